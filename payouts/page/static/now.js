// Beside each field of a time: the viewer's offset from UTC, and the present moment.
for (const field of document.querySelectorAll('input[data-time]')) {
	const minutes = -new Date().getTimezoneOffset();
	const two = (n) => String(Math.floor(n)).padStart(2, '0');
	const hint = document.createElement('p');
	hint.className = 'hint';
	hint.textContent = 'Your clock is at UTC' + (minutes < 0 ? '-' : '+') + two(Math.abs(minutes) / 60) + ':' +
		two(Math.abs(minutes) % 60) + '. ';
	const now = document.createElement('button');
	now.type = 'button';
	now.className = 'plain';
	now.textContent = 'Now';
	now.addEventListener('click', () => {
		field.value = new Date().toISOString().slice(0, 19).replace('T', ' ') + ' UTC';
	});
	hint.append(now);
	field.closest('label').after(hint);
}

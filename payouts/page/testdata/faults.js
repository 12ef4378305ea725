(() => {
	const faults = [];
	const light = c => {
		const [r, g, b] = c.map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
		return .2126 * r + .7152 * g + .0722 * b;
	};
	const colour = text => text.match(/[\d.]+/g).map(Number);
	const ground = e => {
		for (; e; e = e.parentElement) {
			const c = colour(getComputedStyle(e).backgroundColor);
			if (c.length < 4 || c[3] === 1) return c.slice(0, 3);
		}
		return [255, 255, 255];
	};
	for (const e of document.querySelectorAll('body *')) {
		const shown = e.getClientRects().length > 0;
		const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
		if (shown && (own || e.matches('input, select'))) {
			const [a, b] = [light(colour(getComputedStyle(e).color).slice(0, 3)), light(ground(e))].sort((x, y) => y - x);
			const contrast = (a + .05) / (b + .05);
			if (contrast < 4.5) faults.push('contrast ' + contrast.toFixed(2) + ': ' + e.textContent.trim().slice(0, 40));
		}
		if (e.matches('input:not([type=hidden]), select') && !e.labels.length) faults.push('no label: ' + e.name);
		if (e.id && document.querySelectorAll('#' + CSS.escape(e.id)).length > 1) faults.push('id twice: ' + e.id);
		for (const id of (e.getAttribute('aria-describedby') || '').split(' ')) {
			if (id && !document.getElementById(id)) faults.push('described by nothing: ' + id);
		}
	}
	for (const td of document.querySelectorAll('td[data-label]')) {
		if (!td.textContent.trim() && !td.querySelector('input')) faults.push('an empty label: ' + td.dataset.label);
	}
	for (const time of document.body.innerText.match(/\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?(?! (UTC|and)|:|\d)/g) || []) faults.push('no zone: ' + time);
	if (document.querySelectorAll('h1').length !== 1) faults.push('not one h1');
	if (document.querySelectorAll('main').length !== 1) faults.push('not one main');
	for (const h of document.querySelectorAll('thead th, tbody th')) if (!h.scope) faults.push('a header without a scope');
	for (const e of innerWidth < 400 ? document.querySelectorAll('main tbody *, main section:not(:has(table)) *') : []) {
		if (e.clientWidth > 1 && e.scrollWidth > e.clientWidth && !e.querySelector('.hidden')) faults.push('sticks out: ' + e.outerHTML);
	}
	return faults;
})()

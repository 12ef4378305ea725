package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/time/rate"
)

// account is the one user.
type account struct {
	name string
	hash []byte // of the password, by bcrypt
}

func accountFromEnv() (account, error) {
	a := account{os.Getenv("BACKOFFICE_USER"), []byte(os.Getenv("BACKOFFICE_PASSWORD_HASH"))}
	if a.name == "" {
		return a, errors.New("BACKOFFICE_USER is not set: name who may sign in")
	}
	if cost, err := bcrypt.Cost(a.hash); err != nil || cost < bcrypt.DefaultCost {
		return a, errors.New("BACKOFFICE_PASSWORD_HASH is not a hash by bcrypt, of cost 10 or more")
	}
	return a, nil
}

// A session, and the tries to open one. The bound holds for everybody together:
// behind a proxy all come from one address. Somebody who guesses all the time
// keeps others from signing in, but not those who have.
const (
	sessionCookie = "backoffice"
	sessionTime   = 8 * time.Hour
	triesAtOnce   = 5
	triesEvery    = 10 * time.Second
)

// door knows who is signed in.
type door struct {
	account account
	https   bool
	tries   *rate.Limiter

	mu       sync.Mutex
	sessions map[[sha256.Size]byte]time.Time // the end of each, by the hash of its token
}

func newDoor(a account, https bool) *door {
	return &door{
		account: a, https: https, tries: rate.NewLimiter(rate.Every(triesEvery), triesAtOnce),
		sessions: map[[sha256.Size]byte]time.Time{},
	}
}

// admits compares in a time that does not tell whether the name is right: the
// password is always compared with the one hash that there is.
func (d *door) admits(name, password string) bool {
	wrong := bcrypt.CompareHashAndPassword(d.account.hash, []byte(password))
	given, wanted := sha256.Sum256([]byte(name)), sha256.Sum256([]byte(d.account.name))
	return subtle.ConstantTimeCompare(given[:], wanted[:]) == 1 && wrong == nil
}

// enter opens a session. Its token is new at each sign-in, and only its hash is kept.
func (d *door) enter(w http.ResponseWriter) {
	token, now := rand.Text(), time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for other, end := range d.sessions {
		if now.After(end) {
			delete(d.sessions, other)
		}
	}
	d.sessions[sha256.Sum256([]byte(token))] = now.Add(sessionTime)
	http.SetCookie(w, d.cookie(token, int(sessionTime.Seconds())))
}

func (d *door) leave(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, session(r))
	http.SetCookie(w, d.cookie("", -1))
}

func (d *door) cookie(token string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: sessionCookie, Value: token, Path: "/", MaxAge: seconds,
		HttpOnly: true, Secure: d.https, SameSite: http.SameSiteStrictMode,
	}
}

// session returns what the session of a request is kept by.
func session(r *http.Request) [sha256.Size]byte {
	var token string
	if c, err := r.Cookie(sessionCookie); err == nil {
		token = c.Value
	}
	return sha256.Sum256([]byte(token))
}

func (d *door) knows(r *http.Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	end, ok := d.sessions[session(r)]
	return ok && time.Now().Before(end)
}

// guard lets nobody through who is not signed in.
func (d *door) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.knows(r) {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (o *office) loginForm(w http.ResponseWriter, r *http.Request) {
	o.showLogin(w, r, http.StatusOK, nil)
}

func (o *office) showLogin(w http.ResponseWriter, r *http.Request, status int, s *said) {
	o.show(w, r, status, "login", page{Title: "Sign in", Public: true, Said: s})
}

func (o *office) login(w http.ResponseWriter, r *http.Request) {
	if !o.readForm(w, r) {
		return
	}
	switch {
	case !o.door.tries.Allow():
		w.Header().Set("Retry-After", strconv.Itoa(int(triesEvery.Seconds())))
		o.showLogin(w, r, http.StatusTooManyRequests, &said{Kind: "too-many-tries"})
	case !o.door.admits(r.PostForm.Get("user"), r.PostForm.Get("password")):
		o.log.WarnContext(r.Context(), "sign-in refused") // without the name: it may be a password
		o.showLogin(w, r, http.StatusForbidden, &said{Kind: "wrong-password"})
	default:
		o.log.InfoContext(r.Context(), "signed in")
		o.door.enter(w)
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

func (o *office) logout(w http.ResponseWriter, r *http.Request) {
	o.door.leave(w, r)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

package workload

import "strings"

// optionsPath is the section that says how an object store is reached, and with which credentials.
const optionsPath = "storage.storage_options"

// masked is what stands in place of what may be a credential.
const masked = "***"

// discreet is the text of an override without what may be a credential: the value of a key that is one, of a key of storage_options that does
// not exist, since it may be a misspelt one, and of any key that is named like one.
func discreet(text string) string {
	name, value, ok := strings.Cut(text, "=")
	if !ok || !confides(secrets(), strings.TrimPrefix(strings.TrimLeft(name, "+~"), "workload."), value) {
		return text
	}
	return name + "=" + masked
}

// tellsMore reports whether addresses of servers hold more than scheme and host: a user, a password, a query.
func tellsMore(addresses string) bool {
	for address := range strings.SplitSeq(addresses, ",") {
		if _, rest, ok := strings.Cut(address, "://"); ok && strings.ContainsAny(rest, "@?") {
			return true
		}
	}
	return false
}

// secrets says of every key whether it is a credential.
func secrets() map[string]bool {
	all := map[string]bool{}
	for _, k := range keys(new(Workload)) {
		all[k.path] = k.secret
	}
	return all
}

// confides reports whether the value of a key may hold a credential. known says of every key whether it is one.
func confides(known map[string]bool, path, value string) bool {
	if path == optionsPath+".endpoint_url" && tellsMore(value) {
		return true
	}
	if secret, ok := known[path]; ok {
		return secret
	}
	if strings.HasPrefix(path, optionsPath+".") || strings.Contains(path, "storage_options") {
		return true
	}
	value = strings.ToLower(value)
	for _, word := range []string{"secret", "password", "token", "credential", "access_key"} {
		if strings.Contains(strings.ToLower(path), word) || strings.HasPrefix(strings.TrimSpace(value), "{") && strings.Contains(value, word) {
			return true
		}
	}
	return path == "storage" && strings.Contains(value, "storage_options")
}

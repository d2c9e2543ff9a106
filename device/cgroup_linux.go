package device

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// cgroupLimit is the least memory limit, in bytes, of the control groups of the process: its own and
// all above it, of version 1, 2 or both. It is most if that is less. root is the root of the file
// system.
func cgroupLimit(root fs.FS, most int64) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return most
	}
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return most
	}
	for line := range strings.Lines(string(groups)) { // 4:memory:/a/b, or 0::/a/b in version 2
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		kind, file := "cgroup", "memory.limit_in_bytes"
		switch {
		case parts[0] == "0" && parts[1] == "":
			kind, file = "cgroup2", "memory.max"
		case !slices.Contains(strings.Split(parts[1], ","), "memory"):
			continue
		}
		for mount := range strings.Lines(string(mounts)) {
			if top, at, ok := cgroupMount(mount, kind); ok {
				most = min(most, limitAlong(root, at, below(top, parts[2]), file))
			}
		}
	}
	return most
}

// cgroupMount reads a line of mountinfo. ok says that it is a mount of the given kind and, in version
// 1, of the memory controller. top is the control group at the root of the mount, and at is where it
// is mounted.
func cgroupMount(line, kind string) (top, at string, ok bool) {
	about, super, ok := strings.Cut(line, " - ")
	f, s := strings.Fields(about), strings.Fields(super)
	if !ok || len(f) < 5 || len(s) < 3 || s[0] != kind || kind == "cgroup" && !slices.Contains(strings.Split(s[2], ","), "memory") {
		return "", "", false
	}
	return unescape.Replace(f[3]), unescape.Replace(f[4]), true
}

// unescape undoes the escapes of mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// below returns the path of group in a mount whose root is the group top. If group is not below top,
// it returns the root: in most containers, the root is the group of the process.
func below(top, group string) string {
	if top == "/" {
		return path.Clean("/" + group)
	}
	if rest, ok := strings.CutPrefix(group, top); ok && (rest == "" || rest[0] == '/') {
		return path.Clean("/" + rest)
	}
	return "/"
}

// limitAlong is the least limit of group and of the groups above it, in the mount at the path at. Each
// group has its limit in the file of the given name.
func limitAlong(root fs.FS, at, group, file string) int64 {
	least := int64(addressable)
	for {
		name := strings.TrimPrefix(path.Join(at, group, file), "/")
		if text, err := fs.ReadFile(root, name); err == nil {
			// without a limit the text is "max"
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				least = min(least, n)
			}
		}
		if group == "/" {
			return least
		}
		group = path.Dir(group)
	}
}

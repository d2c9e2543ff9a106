package device

import (
	"testing"
	"testing/fstest"
)

// The limit is the least one of all groups that the process is in, wherever they are mounted, in both versions.
func TestCgroupLimit(t *testing.T) {
	const (
		v2     = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		v1     = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n35 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
		hybrid = v1 + "41 31 0:40 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	)
	for name, c := range map[string]struct {
		groups, mounts string
		files          map[string]string
		want           int64
	}{
		"none":                {"", "", nil, 1000},
		"its own, version 2":  {"0::/a/b\n", v2, map[string]string{"sys/fs/cgroup/a/b/memory.max": "300\n"}, 300},
		"a parent":            {"0::/a/b\n", v2, map[string]string{"sys/fs/cgroup/a/b/memory.max": "300\n", "sys/fs/cgroup/a/memory.max": "200\n"}, 200},
		"max":                 {"0::/a/b\n", v2, map[string]string{"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 1000},
		"another's":           {"0::/a\n", v2, map[string]string{"sys/fs/cgroup/b/memory.max": "1\n", "sys/fs/cgroup/a/b/memory.max": "1\n"}, 1000},
		"more than there is":  {"0::/a\n", v2, map[string]string{"sys/fs/cgroup/a/memory.max": "5000\n"}, 1000},
		"a namespace":         {"0::/\n", v2, map[string]string{"sys/fs/cgroup/memory.max": "400\n"}, 400},
		"outside of it":       {"0::/../x\n", v2, map[string]string{"sys/fs/cgroup/memory.max": "400\n"}, 400},
		"mounted in part":     {"0::/pod/c\n", "30 23 0:26 /pod /cg rw - cgroup2 cgroup2 rw\n", map[string]string{"cg/c/memory.max": "300", "cg/memory.max": "350", "cg/pod/c/memory.max": "1"}, 300},
		"not shown":           {"0::/pod/c\n", "30 23 0:26 /podium /cg rw - cgroup2 cgroup2 rw\n", map[string]string{"cg/memory.max": "350", "cg/ium/memory.max": "1"}, 350},
		"its own, version 1":  {"3:cpu:/z\n4:memory:/a/b\n0::/\n", v1, map[string]string{"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "300\n", "sys/fs/cgroup/cpu/z/memory.limit_in_bytes": "1"}, 300},
		"several controllers": {"4:cpu,memory:/a\n", v1, map[string]string{"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "600"}, 600},
		"both versions":       {"4:memory:/a\n0::/b\n", hybrid, map[string]string{"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "300\n", "sys/fs/cgroup/unified/b/memory.max": "250\n"}, 250},
		"a space":             {"0::/a b\n", "30 23 0:26 / /my\\040cg rw - cgroup2 cgroup2 rw\n", map[string]string{"my cg/a b/memory.max": "300"}, 300},
		"nonsense":            {"x\n0:\n::\n0::\n", "x\n - \n1 2 3 4 5 - cgroup2\n", map[string]string{"memory.max": "1"}, 1000},
		"a number that isn't": {"0::/a\n", v2, map[string]string{"sys/fs/cgroup/a/memory.max": "-5\n", "sys/fs/cgroup/memory.max": ""}, 1000},
	} {
		root := fstest.MapFS{"proc/self/cgroup": {Data: []byte(c.groups)}, "proc/self/mountinfo": {Data: []byte(c.mounts)}}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := cgroupLimit(root, 1000); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := cgroupLimit(fstest.MapFS{}, 1000); got != 1000 {
		t.Errorf("without /proc: %d", got)
	}
}

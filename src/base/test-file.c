/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int main(void)
{
	char dir[] = "/tmp/test-file-XXXXXX", *deep, *path, *text = NULL;
	struct stat st;
	size_t len = 0;

	if (!mkdtemp(dir))
		return 1;
	deep = str_format("%s/a/b/c", dir);
	path = str_format("%s/x.ini", deep);

	check(fd_mkdir_parents(deep, 0755) == 0 && fd_mkdir_parents(deep, 0755) == 0,
	      "fd_mkdir_parents: makes all of it, twice is fine");
	check(file_read_at(AT_FDCWD, path, 100, &text, &len) == -ENOENT, "file_read_at: not there");
	check(file_replace(path, "one", 3, 0640) == 0, "file_replace: a new file");
	check(file_replace(path, "three", 5, 0640) == 0, "file_replace: an old file");
	check(file_put(path, "two", 3, 0640) == 0 &&
		      file_read_at(AT_FDCWD, path, 5, &text, &len) == 0 && str_eq(text, "two"),
	      "file_put: in place of another");
	free(text);
	check(file_replace(path, "three", 5, 0640) == 0, "file_replace: and again");
	check(file_read_at(AT_FDCWD, path, 5, &text, &len) == 0 && len == 5 &&
		      str_eq(text, "three"),
	      "file_read_at: all of it");
	free(text);
	check(file_read_at(AT_FDCWD, path, 4, &text, &len) == -EFBIG,
	      "file_read_at: larger than allowed");
	check(stat(path, &st) == 0 && (st.st_mode & 07777) == 0640, "file_replace: sets the mode");
	check(file_read_at(AT_FDCWD, "/proc/self/stat", 65536, &text, &len) == 0 && len > 20,
	      "file_read_at: files of /proc, which tell no size");
	free(text);

	check(file_find_program("sh") == 0 && file_find_program("/bin/sh") == 0,
	      "file_find_program: by its name and by its path");
	check(file_find_program("no-such-program") == -ENOENT && file_find_program("") == -ENOENT &&
		      file_find_program("/nowhere/sh") == -ENOENT &&
		      file_find_program(path) == -EACCES && file_find_program("/tmp") == -EACCES,
	      "file_find_program: nothing, nobody's, no program, a folder");

	unlink(path);
	while (strlen(deep) > strlen(dir)) {
		rmdir(deep);
		*strrchr(deep, '/') = '\0';
	}
	check(rmdir(dir) == 0, "file_replace: leaves no other file behind");
	free(deep);
	free(path);
	return check_result();
}

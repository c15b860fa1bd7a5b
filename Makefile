# SPDX-License-Identifier: Apache-2.0
# The front door. Meson builds; this file says which script does what.
#
#   make          build into build/
#   make check    install what the tests need, build, run every test (root)
#   make demo     install what is missing, build, show it (root)
#   make bench    print the tables of measurements (root for most)
#   make soak     kill tenants and daemons a thousand times, and count (root)
#   make clean    remove what was built
all:
	tools/setup build
	tools/build
check:
	tools/setup check
	tests/run
demo:
	tools/setup build
	tools/build
	tools/demo
bench:
	tools/setup check
	bench/run
soak:
	tools/setup check
	bench/run refusals kills soak
clean:
	rm -rf build build-*
.PHONY: all check demo bench soak clean

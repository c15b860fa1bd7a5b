#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test-docs.sh COTENANT GEN-MAN SOURCE-ROOT: what is made from tables and what lies in
# the tree say the same.
failed=0
check() {
	if [ "$1" = 0 ]; then echo "ok '$2'"; else echo "NOT OK '$2'"; failed=1; fi
}

"$1" api --markdown | cmp -s - "$3/docs/api.md"
check $? "docs/api.md is what cotenant api --markdown prints"

for verb in $("$1" help --json | sed -n 's/.*"verb": "\(.*\)".*/\1/p' | tr ' ' -); do
	"$2" "cotenant-$verb" >/dev/null && grep -q "'$verb'" "$3/man/meson.build"
	check $? "there is a man page of cotenant $verb"
done

"$1" completion bash | bash -n
check $? "the completion script is one"
exit $failed

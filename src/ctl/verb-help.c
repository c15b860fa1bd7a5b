/* SPDX-License-Identifier: Apache-2.0 */
/* cotenant help, completion: from the tables. */
#include "ctl/ctl.h"

static int print_verbs(const struct ctl *ctl)
{
	json_t *list;
	int i;

	if (ctl->json) {
		list = json_array();
		for (i = 0; i < N_VERBS; i++)
			json_array_append_new(list,
					      json_pack("{s:s, s:s, s:s}", "verb", verbs[i].name,
							"synopsis", verbs[i].synopsis, "help",
							verbs[i].help));
		return ctl_print_json(list);
	}
	printf("cotenant VERB ...: many tenants share one NVIDIA GPU, each with a quota that "
	       "holds\n\n");
	for (i = 0; i < N_VERBS; i++)
		printf("  %-11s %s\n", verbs[i].name, verbs[i].help);
	printf("\nEach takes --json, --socket PATH and --help. Sizes: 4G, 512MiB, 50%%, max. "
	       "Times: 30s, "
	       "500ms.\n");
	return 0;
}

/* Words wrapped at 78 columns, each line indented. */
static void print_wrapped(const char *text, int indent)
{
	int column = indent, n;

	printf("%*s", indent, "");
	while (*text) {
		n = strcspn(text, " ");
		if (column > indent && column + n > 78) {
			printf("\n%*s", indent, "");
			column = indent;
		}
		printf("%.*s ", n, text);
		column += n + 1;
		text += n + strspn(text + n, " ");
	}
	putchar('\n');
}

static int print_verb(enum verb_id verb)
{
	struct option_info options[VERB_MAX_OPTIONS];
	size_t i, n = verb_options(verb, options);
	const char *text;

	printf("cotenant %s %s\n\n", verbs[verb].name, verbs[verb].synopsis);
	print_wrapped(verbs[verb].help, 2);
	for (i = 0; (text = verb_text(verb, i)); i++) {
		putchar('\n');
		print_wrapped(text, 2);
	}
	putchar('\n');
	for (i = 0; i < n; i++) {
		printf("  --%s%s%s\n", options[i].name, options[i].metavar ? " " : "",
		       options[i].metavar ? options[i].metavar : "");
		print_wrapped(options[i].help, 8);
	}
	return 0;
}

int verb_help(const struct ctl *ctl)
{
	_cleanup_free_ char *both = NULL;
	int verb;

	if (ctl->argc == 0)
		return print_verbs(ctl);
	both = ctl->argc > 1 ? str_format("%s %s", ctl->argv[0], ctl->argv[1]) : NULL;
	verb = verb_find(both ? both : ctl->argv[0]);
	if (verb < 0)
		return ctl_usage(ctl, "there is no verb '%s'", both ? both : ctl->argv[0]);
	return print_verb(verb);
}

static void print_bash_case(enum verb_id verb)
{
	struct option_info options[VERB_MAX_OPTIONS];
	size_t i, n = verb_options(verb, options);

	printf("\t\"%s\") words=\"", verbs[verb].name);
	for (i = 0; i < n; i++)
		printf("%s--%s", i ? " " : "", options[i].name);
	printf("\" ;;\n");
}

static int print_bash(void)
{
	int i;

	printf("_cotenant() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words=\n"
	       "\tif [ $COMP_CWORD -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W \"");
	for (i = 0; i < N_VERBS; i++)
		printf("%s%s", i ? " " : "", verbs[i].name);
	printf("\" -- \"$cur\"))\n\t\treturn\n\tfi\n"
	       "\t[ \"$verb\" = vm ] && { verb=\"vm ${COMP_WORDS[2]}\"; words=\"run list\"; }\n"
	       "\tcase $verb in\n");
	for (i = 0; i < N_VERBS; i++)
		print_bash_case(i);
	printf("\tesac\n"
	       "\tcase $verb in\n"
	       "\tset|show|release) words+=\" $(cotenant list 2>/dev/null | awk 'NR > 1 { print $1 "
	       "}')\" ;;\n"
	       "\trun) COMPREPLY=($(compgen -c -- \"$cur\")) ;;\n"
	       "\tesac\n"
	       "\tCOMPREPLY+=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
	       "complete -F _cotenant cotenant\n");
	return 0;
}

int verb_completion(const struct ctl *ctl)
{
	if (ctl->argc != 1 || (!str_eq(ctl->argv[0], "bash") && !str_eq(ctl->argv[0], "zsh")))
		return ctl_usage(ctl, "say for which shell: bash or zsh");
	if (str_eq(ctl->argv[0], "zsh"))
		printf("autoload -U +X bashcompinit && bashcompinit\n");
	return print_bash();
}

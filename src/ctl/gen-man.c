/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen-man PAGE: a man page, from the tables that the programs use themselves.
 *
 * Pages: cotenant, cotenant-VERB, cotenantd, and cotenant-tenants (the files).
 */
#include "ctl/ctl.h"
#include "tenant/limit.h"

static const struct option_info daemon_options[] = {
#define OPTION(id, name, metavar, without, help) { name, metavar, help },
#include "daemon/options.def"
#undef OPTION
};

static const struct {
	const char *name;
	const char *type;
	const char *help;
} metrics[] = {
#define METRIC(id, name, type, help) { name, type, help },
#include "daemon/metrics.def"
#undef METRIC
};

static const struct {
	const char *name;
	const char *why;
} events[] = {
#define EVENT_KIND(id, name, why, what_to_do) { name, why },
#include "daemon/event-kinds.def"
#undef EVENT_KIND
};

/* A line that begins with a dot or quote would be a request; a bare - a hyphen. */
static void put(const char *s)
{
	if (*s == '.' || *s == '\'')
		fputs("\\&", stdout);
	for (; *s; s++) {
		if (*s == '-')
			fputs("\\-", stdout);
		else if (*s == '\\')
			fputs("\\e", stdout);
		else
			putchar(*s);
	}
}

static void heading(const char *page, const char *section, const char *what)
{
	printf(".\\\" SPDX-License-Identifier: Apache-2.0\n.TH \"%s\" %s \"\" \"cotenant %s\"\n"
	       ".SH NAME\n",
	       page, section, CTL_VERSION);
	put(page);
	printf(" \\- ");
	put(what);
	putchar('\n');
}

static void paragraph(const char *text)
{
	printf(".PP\n");
	put(text);
	putchar('\n');
}

static void item(const char *label, const char *metavar, const char *help)
{
	printf(".TP\n\\fB");
	put(label);
	printf("\\fR");
	if (metavar)
		printf(" \\fI%s\\fR", metavar);
	putchar('\n');
	put(help);
	putchar('\n');
}

static void option_item(const struct option_info *option)
{
	char label[64];

	snprintf(label, sizeof(label), "--%s", option->name);
	item(label, option->metavar, option->help);
}

static void see_also(const char *others)
{
	printf(".SH SEE ALSO\n%s\n", others);
}

static void verb_page(enum verb_id verb)
{
	struct option_info options[VERB_MAX_OPTIONS];
	size_t i, n = verb_options(verb, options);
	char page[64], *space;

	snprintf(page, sizeof(page), "cotenant-%s", verbs[verb].name);
	for (space = page; (space = strchr(space, ' '));)
		*space = '-';
	heading(page, "1", verbs[verb].help);
	printf(".SH SYNOPSIS\n.B cotenant %s\n", verbs[verb].name);
	put(verbs[verb].synopsis);
	printf("\n.SH DESCRIPTION\n");
	put(verbs[verb].help);
	printf(".\n");
	for (i = 0; verb_text(verb, i); i++)
		paragraph(verb_text(verb, i));
	printf(".SH OPTIONS\n");
	for (i = 0; i < n; i++)
		option_item(&options[i]);
	see_also(".BR cotenant (1),\n.BR cotenant\\-tenants (5),\n.BR cotenantd (8)");
}

static void command_page(void)
{
	int i;

	heading("cotenant", "1", "many tenants share one NVIDIA GPU, each with a quota that holds");
	printf(".SH SYNOPSIS\n.B cotenant\n.I VERB\n[OPTIONS]\n.SH DESCRIPTION\n");
	put("Starts programs as tenants, sets and shows their limits, and tells what happened. The "
	    "daemon cotenantd keeps the books; this command asks it over its socket.");
	putchar('\n');
	paragraph("Sizes are written as 4G, 512MiB or 50% of a device, times as 30s or 500ms; max "
		  "is no "
		  "limit. Every verb takes --json.");
	printf(".SH VERBS\n");
	for (i = 0; i < N_VERBS; i++)
		item(verbs[i].name, NULL, verbs[i].help);
	printf(".SH ENVIRONMENT\n");
	item("COTENANT_SOCKET", NULL, "where the daemon listens, " API_DEFAULT_SOCKET " otherwise");
	printf(".SH EXIT STATUS\n");
	put("0 for success, 1 when it was refused or failed, 2 for a command line that is wrong; "
	    "run passes "
	    "on that of its command.");
	putchar('\n');
	see_also(".BR cotenant\\-run (1),\n.BR cotenant\\-set (1),\n.BR cotenant\\-tenants (5),\n"
		 ".BR cotenantd (8)");
}

static void daemon_page(void)
{
	size_t i;

	heading("cotenantd", "8", "keeps the books of GPU tenants and their limits");
	printf(".SH SYNOPSIS\n.B cotenantd\n[OPTIONS]\n.SH DESCRIPTION\n");
	put("Puts probes on the CUDA driver's entry points, answers or holds allocations beyond a "
	    "limit, "
	    "settles the books against the devices twice a second, and serves the API. Probes and "
	    "books "
	    "stay when it ends, however it ends; the next start takes them over.");
	putchar('\n');
	paragraph("SIGHUP reads tenants.d again; a file that changes is read by itself.");
	printf(".SH OPTIONS\n");
	for (i = 0; i < ARRAY_SIZE(daemon_options); i++)
		option_item(&daemon_options[i]);
	printf(".SH METRICS\n");
	for (i = 0; i < ARRAY_SIZE(metrics); i++)
		item(metrics[i].name, metrics[i].type, metrics[i].help);
	printf(".SH EVENTS\n");
	for (i = 0; i < ARRAY_SIZE(events); i++)
		item(events[i].name, NULL, events[i].why);
	see_also(".BR cotenant (1),\n.BR cotenant\\-tenants (5)");
}

static void files_page(void)
{
	size_t i;

	heading("cotenant-tenants", "5", "files of tenants and their limits");
	printf(".SH SYNOPSIS\n.I /etc/cotenant/tenants.d/*.ini\n.SH DESCRIPTION\n");
	put("A section per tenant. The command edits these files, too, and leaves comments and "
	    "order as "
	    "they are. A file with a mistake is refused as a whole, with the line and the reason; "
	    "what it "
	    "said before goes on to hold.");
	printf("\n.PP\n.nf\n[alice]\nmatch = user:alice\nmemory.max = 8G\nmemory.max@GPU\\-5c1e... "
	       "= 4G\n\n"
	       "[device GPU\\-5c1e...]\nmemory.reserve = 512M\n.fi\n.SH ENTRIES\n");
	item("match", "WHO",
	     "user:NAME, group:NAME (each member by himself), cgroup:/PATH (and below), "
	     "pid:N@STARTTIME (and what it starts), or default (each user by himself whom "
	     "nothing else names)");
	for (i = 0; i < N_LIMITS; i++)
		item(limit_infos[i].name, limit_infos[i].metavar, limit_infos[i].help);
	item("gpu", "UUID...", "the devices that may be used; on all others memory.max is 0");
	printf(".PP\n");
	put("Limits of memory and compute can be given for one device: memory.max@UUID. A process "
	    "is charged "
	    "to every tenant that matches it, and the tightest decides.");
	putchar('\n');
	see_also(".BR cotenant\\-set (1),\n.BR cotenantd (8)");
}

int main(int argc, char **argv)
{
	const char *page = argc == 2 ? argv[1] : "", *verb = str_after(page, "cotenant-");

	if (str_eq(page, "cotenant"))
		command_page();
	else if (str_eq(page, "cotenantd"))
		daemon_page();
	else if (str_eq(page, "cotenant-tenants"))
		files_page();
	else if (verb && verb_find(verb) >= 0)
		verb_page(verb_find(verb));
	else
		return 2;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of ours that a fixture of /proc has in this job and that; they are told to end in earnest. */
#include "cluster/node/jobs.h"

#include "base/check.h"
#include "base/file.h"
#include "base/str.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define FREEZER	    "4:freezer:/slurm_n1/uid_0/job_7/step_0\n"
#define OWN	    "0::/a/cotenant-job-7-12/cotenant-web-13\n"
#define SCOPE	    "0::/system.slice/n1_slurmstepd.scope/job_7/step_0"
#define JOB_7_OF_N1 FREEZER OWN

static char root[] = "/tmp/test-jobs-XXXXXX";

static void is_of(uint32_t job, const char *cgroups, const char *what)
{
	uint32_t said = jobs_of_process(cgroups, strlen(cgroups), "n1");

	check(said == job, "jobs_of_process: %s (%u)", what, said);
}

static void test_whose(void)
{
	is_of(7, JOB_7_OF_N1, "of a tenant that was made for the job");
	is_of(7, FREEZER "0::/cotenant-job-7-12\n", "at the root of the hierarchy");
	is_of(7, "4:freezer:/slurm/uid_0/job_7/step_0\n" OWN,
	      "where nodes have no names in cgroups");
	is_of(0, "4:freezer:/slurm_n10/uid_0/job_7/step_0\n" OWN, "not of another node");
	is_of(0, "4:freezer:/slurm_n/uid_0/job_7/step_0\n" OWN, "nor of one with a shorter name");
	is_of(0, FREEZER "0::/\n", "not its keeper");
	is_of(0, FREEZER "0::/cotenant-job-70-12\n", "not of another job's tenant");
	is_of(0, OWN, "nor who is called so, and is in none of Slurm's folders");
	is_of(0, "4:freezer:/user/slurm_n1/uid_0/job_7\n" OWN, "which are at the root");
	is_of(7, SCOPE "/user/task_0\n", "where cgroup v2 is alone");
	is_of(7, "0::/system.slice/slurmstepd.scope/job_7/step_batch/user/task_0\n",
	      "there, too, without the node's name");
	is_of(0, SCOPE "/slurm\n", "not its keeper there");
	is_of(0, "0::/system.slice/n10_slurmstepd.scope/job_7/step_0/user/task_0\n",
	      "not of another node there");
	is_of(0, "0::/user.slice/n1_slurmstepd.scope/job_7/step_0/user/task_0\n",
	      "nor where a user may make folders");
	is_of(0, "", "nobody");
	is_of(0, "0::/a\n0::/b\n", "nor what the kernel does not say");
}

static void put(pid_t pid, const char *cgroups)
{
	_cleanup_free_ char *dir = str_format("%s/%d", root, pid),
			    *file = str_format("%s/cgroup", dir),
			    *stat = str_format("%s/stat", dir),
			    *real = str_format("/proc/%d/stat", pid);

	check(mkdir(dir, 0700) == 0 && file_replace(file, cgroups, strlen(cgroups), 0600) == 0 &&
		      symlink(real, stat) == 0,
	      "a process of the fixture");
}

static void take_away(pid_t pid)
{
	_cleanup_free_ char *dir = str_format("%s/%d", root, pid),
			    *file = str_format("%s/cgroup", dir),
			    *stat = str_format("%s/stat", dir);

	unlink(file);
	unlink(stat);
	rmdir(dir);
}

/* Has blocked SIGTERM if @is_stubborn; is stopped if @is_stopped. */
static pid_t start(const char *cgroups, bool is_stubborn, bool is_stopped)
{
	sigset_t term;
	pid_t pid;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(is_stubborn ? SIG_BLOCK : SIG_UNBLOCK, &term, NULL);
	pid = fork();
	if (pid == 0) {
		if (is_stopped)
			raise(SIGSTOP);
		for (;;)
			pause();
	}
	sigprocmask(SIG_UNBLOCK, &term, NULL);
	if (is_stopped)
		waitpid(pid, NULL, WUNTRACED);
	put(pid, cgroups);
	return pid;
}

/* Waits for its end without burying it. */
static int ended_by(pid_t pid)
{
	siginfo_t info = {};

	return waitid(P_PID, pid, &info, WEXITED | WNOWAIT) == 0 ? info.si_status : -1;
}

static bool lives(pid_t pid)
{
	siginfo_t info = {};

	return waitid(P_PID, pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid == 0;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	take_away(pid);
}

static void test_ends(const struct jobs *jobs)
{
	struct jobs_order order = { .node = "n1", .kept = "3 70" };
	pid_t stopped = start(JOB_7_OF_N1, false, /* is_stopped= */ true),
	      stubborn = start("4:freezer:/slurm_n1/uid_0/job_8/step_0\n0::/cotenant-job-8-1\n",
			       /* is_stubborn= */ true, false),
	      kept = start("4:freezer:/slurm_n1/uid_0/job_70/step_0\n0::/cotenant-job-70-1\n",
			   false, false),
	      other = start("0::/a\n", false, false);
	struct jobs_told told;

	check(jobs_end(jobs, &order, &told) == 0 && told.n_processes == 2 && told.n_jobs == 2,
	      "jobs_end: tells those of two jobs");
	check(ended_by(stopped) == SIGTERM, "jobs_end: who is stopped hears it, too");
	check(jobs_end(jobs, &order, &told) == 0 && told.n_processes == 1 && told.jobs[0] == 8,
	      "jobs_end: who is not buried yet has ended");
	order.is_kill = true;
	check(jobs_end(jobs, &order, &told) == 0 && told.n_processes == 1 &&
		      ended_by(stubborn) == SIGKILL,
	      "jobs_end: who does not hear SIGTERM is killed");
	check(jobs_end(jobs, &order, &told) == 0 && told.n_processes == 0 && told.n_jobs == 0,
	      "jobs_end: then none is left");
	check(lives(kept) && lives(other), "jobs_end: nobody else has heard anything");
	order.kept = "";
	check(jobs_end(jobs, &order, &told) == 0 && told.jobs[0] == 70 && ended_by(kept) == SIGKILL,
	      "jobs_end: nor is a job kept for longer than it is said");
	end(stopped);
	end(stubborn);
	end(kept);
	end(other);
}

/* The folders of the hierarchies are those of a fixture as well: ordinary files. */
static char *knob(const char *folder, const char *name, const char *was)
{
	_cleanup_free_ char *dir = str_format("%s/%s", root, folder);
	char *path = str_format("%s/%s", dir, name), *slash = dir;

	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		mkdir(dir, 0700);
		*slash = '/';
	}
	mkdir(dir, 0700);
	check(file_replace(path, was, strlen(was), 0600) == 0, "a folder of the fixture");
	return path;
}

static bool says(const char *path, const char *wanted)
{
	_cleanup_free_ char *text = NULL;

	return file_read_at(AT_FDCWD, path, 100, &text, NULL) == 0 && str_eq(text, wanted);
}

static void test_frozen(const struct jobs *jobs)
{
	_cleanup_free_ char *step = knob("freezer/slurm_n1/uid_0/job_7/step_0", "freezer.state",
					 "FROZEN"),
			    *job = knob("freezer/slurm_n1/uid_0/job_7", "freezer.state", "FROZEN"),
			    *user = knob("freezer/slurm_n1/uid_0", "freezer.state", "FROZEN"),
			    *own = knob("unified/a/cotenant-job-7-12", "cgroup.freeze", "1"),
			    *killed = knob("unified/a/cotenant-job-7-12", "cgroup.kill", "0"),
			    *above = knob("unified/a", "cgroup.freeze", "1"),
			    *spared = knob("unified/a", "cgroup.kill", "0");
	struct jobs_order order = { .node = "n1", .kept = "" };
	pid_t pid = start(JOB_7_OF_N1, /* is_stubborn= */ true, false);
	struct jobs_told told;

	check(jobs_end(jobs, &order, &told) == 0 && says(step, "THAWED") && says(job, "THAWED") &&
		      says(own, "0") && says(killed, "0"),
	      "jobs_end: whoever is frozen is let go, whichever of the job's folders it is");
	check(says(user, "FROZEN") && says(above, "1"), "jobs_end: and nobody else");
	order.is_kill = true;
	check(jobs_end(jobs, &order, &told) == 0 && says(killed, "1") && says(spared, "0"),
	      "jobs_end: who forks meanwhile is killed by the kernel");
	end(pid);
}

static int remove_all(void)
{
	_cleanup_free_ char *command = str_format("rm -r %s", root);

	return command ? system(command) : -1;
}

int main(void)
{
	struct jobs jobs = {}, real = {};

	test_whose();
	if (!check(mkdtemp(root) != NULL, "a fixture"))
		return check_result();
	jobs.proc_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	jobs.unified = str_format("%s/unified", root);
	jobs.freezer = str_format("%s/freezer", root);
	test_ends(&jobs);
	test_frozen(&jobs);
	jobs_done(&jobs);
	check(remove_all() == 0, "the fixture is gone");
	check(jobs_open(&real) == 0 && real.proc_fd >= 0, "jobs_open: finds where to look");
	jobs_done(&real);
	return check_result();
}

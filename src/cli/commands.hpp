#pragma once

// One function per command; each returns its exit code (spec, section 12).

namespace holdfast {

struct Invocation;

int run_agent(Invocation&);
int enqueue_run(Invocation&);
int run_worker(Invocation&);
int write_starter(Invocation&);

int list_runs(Invocation&);
int show_run(Invocation&);
int show_events(Invocation&);
int wait_for_runs(Invocation&);
int explain_run(Invocation&);
int show_stats(Invocation&);
int show_workers(Invocation&);

int approve_call(Invocation&);
int deny_call(Invocation&);
int submit_input(Invocation&);
int resolve_write(Invocation&);

int cancel_runs(Invocation&);
int redrive_runs(Invocation&);
int hand_over_run(Invocation&);
int wake_run(Invocation&);
int reap_runs(Invocation&);
int purge_runs(Invocation&);

int verify_store(Invocation&);
int examine_setup(Invocation&);
int backup_store(Invocation&);
int migrate_store(Invocation&);

int print_man(Invocation&);
int print_completion(Invocation&);
int print_help(Invocation&);

}  // namespace holdfast

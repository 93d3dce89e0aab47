// The tests may be run by nohup, or in the background of a script, where some signals are ignored: the
// command would inherit that.
#pragma once

#include <csignal>
#include <initializer_list>

namespace redlock::test {

inline const bool signals_are_default = [] {
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ, SIGCHLD, SIGTSTP, SIGTTIN,
                             SIGTTOU, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU})
        (void)::signal(signal, SIG_DFL);
    return true;
}();

}  // namespace redlock::test

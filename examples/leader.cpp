// Several processes of my program run, and one of them must do the billing. What happens if that process dies
// or hangs?
//
// This program starts three candidates, kills the first leader, and stops the second one (SIGSTOP). Each time
// another candidate takes over, with a larger fencing token. When the stopped leader continues, it finds that
// its term is over, and campaigns again.
#include "node_list.hpp"

#include <redlock/redlock.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

/// Writes one line to the standard output in one piece, because three processes write to it.
template <class... Words>
void say(const Words&... words) {
    std::ostringstream line;
    (line << ... << words) << '\n';
    std::cout << line.str() << std::flush;
}

/// Runs one of the three candidates until SIGTERM.
int candidate(const std::vector<std::string>& uris, int report) {
    alarm(60);  // ends the candidate if the first process does not
    sigset_t sigterm;
    sigemptyset(&sigterm);
    sigaddset(&sigterm, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &sigterm, nullptr);
    std::stop_source stop;
    std::thread{[stop, sigterm]() mutable {
        int signal = 0;
        sigwait(&sigterm, &signal);
        stop.request_stop();
    }}.detach();

    redlock::RedisNodes nodes{uris};
    redlock::Leader leader{
        nodes,
        "billing:leader",
        {.ttl = 2s, .margin = 500ms, .retry = {.delay = 200ms}, .on_failure = [](const auto& result) {
             say(getpid(), ": ", result.message());
         }}};
    leader.run(
        [&](const redlock::Term& term) {
            const pid_t me = getpid();
            say(me, " leads with token ", term.fencing_token());
            if (write(report, &me, sizeof me) != sizeof me) return;
            while (!term.lost().stop_requested()) std::this_thread::sleep_for(10ms);  // the work of a leader
            say(me, " is told to stop, ", term.remaining() / 1ms, " ms before the end of its term");
        },
        stop.get_token());
    return 0;
}

/// Returns the process id of the next leader, as soon as it is elected.
pid_t next_leader(int reports) {
    pid_t leader = 0;
    return read(reports, &leader, sizeof leader) == sizeof leader ? leader : 0;
}

int main(int argc, char** argv) try {
    const auto uris = node_list(argc, argv);
    int ends[2];
    if (pipe(ends) != 0) return 2;
    std::set<pid_t> processes;
    while (processes.size() < 3) {
        const pid_t pid = fork();
        if (pid == 0) return candidate(uris, ends[1]);
        if (pid < 0) return 2;
        processes.insert(pid);
    }
    close(ends[1]);

    const auto killed = next_leader(ends[0]);
    if (processes.erase(killed) == 1) kill(killed, SIGKILL);
    const auto stopped = next_leader(ends[0]);
    if (processes.contains(stopped)) kill(stopped, SIGSTOP);
    say(killed, " was killed, ", stopped, " is stopped");
    const auto last = next_leader(ends[0]);
    if (processes.contains(stopped)) kill(stopped, SIGCONT);
    for (const auto pid : processes) kill(pid, SIGTERM);
    while (wait(nullptr) > 0) {
    }
    return processes.contains(stopped) && processes.contains(last) && stopped != last ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}

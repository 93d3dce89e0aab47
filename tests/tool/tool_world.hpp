// Real servers, and the command redlock run on them as a shell would.
//
//     ToolWorld world{3};
//     const auto outcome = world.run({"run", "job", "--", "make"});
//     EXPECT_EQ(outcome.status, 0);
#pragma once

#include "default_signals.hpp"
#include "live_world.hpp"
#include "support/child_process.hpp"
#include "support/process_files.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace redlock::test {

using support::content;
using support::joined;

/// Whether the command finds nodes on this machine where it is told of none. No test may lock anything there.
inline bool lists_nodes_of_its_own() {
    return std::filesystem::exists("/etc/redlock/nodes");
}

struct Outcome {
    int status;
    std::string out;
    std::string err;
};

/// The command redlock, under way.
class Tool {
public:
    /// The environment variable BEFORE may have a script of the shell, which then runs before the command.
    Tool(const std::vector<std::string>& arguments, std::vector<std::string> environment,
         const std::string& input = "/dev/null") {
        const auto words =
            joined({"sh", "-c", R"(eval "$BEFORE"; exec "$@" <"$IN" >"$OUT" 2>"$ERR")", "sh", REDLOCK_TOOL},
                   arguments);
        environment.push_back("IN=" + input);
        environment.push_back("OUT=" + (*directory_ / "out").string());
        environment.push_back("ERR=" + (*directory_ / "err").string());
        process_ = std::make_unique<support::ChildProcess>(support::Program{words, environment});
    }

    pid_t pid() const { return process_->pid(); }
    bool running() { return process_->running(); }
    void signal(int number) { ::kill(pid(), number); }
    std::string out() const { return content(*directory_ / "out"); }
    std::string err() const { return content(*directory_ / "err"); }

    Outcome wait() {
        EXPECT_TRUE(wait_until([&] { return !running(); })) << "still runs; said: " << err();
        const int status = running() ? -1 : process_->wait();
        return {status, out(), err()};
    }

private:
    std::unique_ptr<support::TemporaryDirectory> directory_ = std::make_unique<support::TemporaryDirectory>();
    std::unique_ptr<support::ChildProcess> process_;
};

/// Whether a process of that number is there, and no zombie.
inline bool lives(const std::string& pid) {
    const auto state = support::state_of(pid);
    return state != '?' && state != 'Z';
}

class ToolWorld : public Cluster {
public:
    explicit ToolWorld(std::size_t nodes = 3, const RedisConfig& config = {}) : Cluster(nodes, config) {}

    /// With a node_timeout for a busy machine, unless the arguments say otherwise.
    Tool start(const std::vector<std::string>& arguments, const std::string& input = "/dev/null") {
        return Tool{arguments, environment(), input};
    }

    Outcome run(const std::vector<std::string>& arguments, const std::string& input = "/dev/null") {
        return start(arguments, input).wait();
    }

    /// `redlock run --node-timeout 2s [OPTION...] job -- sh -c SCRIPT`; the script finds a directory in $DIR.
    std::vector<std::string> job(const std::string& script,
                                 const std::vector<std::string>& options = {}) const {
        return joined(joined({"run", "--node-timeout", "2s"}, options), {"job", "--", "sh", "-c", script});
    }

    /// Starts a job(), and waits for the file that its script makes then.
    Tool start_until(const std::string& file, const std::string& script,
                     const std::vector<std::string>& options = {}) {
        auto tool = start(job(script, options));
        EXPECT_TRUE(comes(file)) << tool.err();
        return tool;
    }

    /// Runs a program to its end. Returns its exit status.
    int status_of(const std::vector<std::string>& words) const {
        support::ChildProcess child{{words, environment()}};
        EXPECT_TRUE(wait_until([&] { return !child.running(); }));
        child.kill();
        return child.wait();
    }
    /// The same for a script of the shell.
    int shell(const std::string& script) const { return status_of({"sh", "-c", script}); }

    /// Not with the user's shell: between two commands of a loop bash takes a SIGINT for one of theirs, and
    /// goes on.
    std::vector<std::string> environment() const {
        return {"REDLOCK_NODES=" + uri_list(), "DIR=" + directory_.path().string(), "SHELL=/bin/sh"};
    }
    /// The same with another variable: "NAME=value".
    std::vector<std::string> environment(const std::string& variable) const {
        auto result = environment();
        result.push_back(variable);
        return result;
    }

    std::filesystem::path file(const std::string& name) const { return directory_ / name; }
    bool has(const std::string& name) const { return std::filesystem::exists(file(name)); }
    /// Waits for the file that a script makes when it has got somewhere.
    bool comes(const std::string& name) const {
        return wait_until([&] { return has(name); });
    }
    std::string in(const std::string& name) const { return content(file(name)); }
    /// The process whose number a script has written into the file.
    std::string pid_in(const std::string& name) const { return in(name).substr(0, in(name).find('\n')); }
    /// Waits for the end of that process. Returns false, and kills the process, if it goes on.
    bool ends(const std::string& name) const {
        const auto pid = pid_in(name);
        if (wait_until([&] { return !lives(pid); })) return true;
        ::kill(std::stoi(pid), SIGKILL);
        return false;
    }
    void touch(const std::string& name) const { std::ofstream{file(name)}; }

    /// On how many nodes the job is locked.
    std::size_t keys() {
        return static_cast<std::size_t>(std::ranges::count_if(*this, [](auto& node) {
            return node.command({"EXISTS", "job"}) == "1";
        }));
    }

    /// Takes the lock away from whoever has it.
    void steal() {
        for (auto& node : *this) node.command({"DEL", "job"});
    }

    /// Has another client hold it.
    void occupy() {
        for (auto& node : *this) node.command({"SET", "job", "another", "PX", "60000"});
    }

private:
    support::TemporaryDirectory directory_{};
};

/// What a script does that goes on until the file "go" is there.
const std::string until_go = "touch $DIR/begun; until [ -e $DIR/go ]; do sleep 0.01; done";

/// Replaces this process by the program. Exits with status 99 if there is no such program.
[[noreturn]] inline void execute(const std::vector<std::string>& words,
                                 const std::vector<std::string>& environment) {
    std::vector<char*> pointers;
    for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    for (const auto& variable : environment) ::putenv(const_cast<char*>(variable.c_str()));
    ::execvp(pointers.front(), pointers.data());
    ::_exit(99);
}

/// What stands behind its name in /proc/PID/stat: the state, the parent, the process group, the session, the
/// terminal, and the process group that has the terminal.
inline std::array<std::string, 6> stat_of(const std::string& pid) {
    const auto stat = content("/proc/" + pid + "/stat");
    std::istringstream fields{stat.substr(stat.rfind(')') + 1)};
    std::array<std::string, 6> words{};
    for (auto& word : words) fields >> word;
    return words;
}

}  // namespace redlock::test

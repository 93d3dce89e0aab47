#include "run_arguments.hpp"

#include "text/words.hpp"

#include <map>
#include <memory>

namespace redlock::tool {
namespace {

/// Names COMMAND in the usage, which the parser of options does not know.
class UsageOfRun : public CLI::Formatter {
public:
    std::string make_usage(const CLI::App* /*app*/, std::string name) const override {
        return "Usage: " + name + " [OPTIONS] RESOURCE [--] COMMAND [ARG...]\n" +  //
               "       " + name + " [OPTIONS] RESOURCE -c STRING\n";
    }
};

/// Adds an option of flock that has no meaning here, and says why.
CLI::Option* add_refused(CLI::App& app, const std::string& names, const std::string& name,
                         const std::string& reason, const std::string& help = {}) {
    const auto refuse = [name, reason](std::int64_t) { throw CLI::ValidationError(name, reason); };
    return app.add_flag_function(names, refuse, help);
}

/// Accepts --at-least, the name of --min-hold in earlier versions, with a warning. --help does not show it.
/// If both are given, that is an error. CLI11 has no name for a hidden option in a message of its own.
void add_former_name(CLI::App& app, std::chrono::milliseconds& min_hold) {
    const auto* const option = app.get_option("--min-hold");
    const auto read = [&min_hold, option](const std::string& text) {
        min_hold = parse_whole<std::chrono::milliseconds>(text);
        if (option->count() > 0)
            throw std::invalid_argument{"is given together with --min-hold, the new name of this option"};
        say("the next version will not know --at-least: use --min-hold");
    };
    add_value(app, "--at-least", read, "", "SPAN")->group("");
}

}  // namespace

void RunArguments::add_to(CLI::App& app) {
    static const std::map<std::string, OnLost> ends{
        {"stop", OnLost::stop}, {"term", OnLost::term}, {"ignore", OnLost::ignore}};
    app.add_option("RESOURCE", resource, "What is locked: the key on the nodes")->required();
    app.add_option("--also", also, "Another resource, as one lock with RESOURCE: all or none")
        ->allow_extra_args(false)
        ->type_name("RESOURCE");
    app.add_option("-c,--command", shell_command, "A command for $SHELL -c, in place of COMMAND");
    app.add_flag("-v,--verbose", verbose, "How long it took and how each node voted, on stderr");
    add_acquisition(app);
    app.add_flag("--fair", lock.fair, "Wait in a queue, and wake the next one in it; all should say so");
    app.add_flag("-s,--shared", lock.shared,
                 "Hold it beside others that say so, never beside one that does not")
        ->excludes("--fair");
    const auto ignore = [](std::int64_t) {};
    app.add_flag_function("-x,--exclusive,-e", ignore,
                          "As it is without --shared; for lines written for flock")
        ->excludes("--shared");
    app.add_flag_function("-o,--close", ignore, "Nothing: there is no descriptor that could be inherited");
    add_refused(app, "-F,--no-fork", "--no-fork", "nobody would extend the lock while the command runs",
                "Refused: nobody would extend the lock");
    add_refused(app, "-u,--unlock", "--unlock",
                "the lock ends with the command; redlock release ends one of redlock acquire")
        ->group("");
    add_refused(app, "-V", "-V", "the version is printed by redlock --version")->group("");
    app.add_option("--holders", holders, "So many may hold RESOURCE at a time; all must say the same")
        ->type_name("INT")
        ->check(CLI::Range(1, 1000))
        ->excludes("--fair", "--shared", "--also");
    add_lease(app, lock);
    add_span(app, "--min-hold", lock.min_hold, "Keep the lock that long, however soon the command ends (0)")
        ->excludes("--shared");
    add_former_name(app, lock.min_hold);
    add_span(app, "--max-hold", lock.max_hold,
             "End the command when it has run for so long (default: no limit)");
    const auto read_policy = [this](const std::string& text) {
        const auto it = ends.find(text);
        if (it == ends.end()) throw std::invalid_argument{"is not stop, term or ignore"};
        policy.on_lost = it->second;
    };
    add_value(app, "--on-lost", read_policy,
              "When the lock is lost: stop (SIGTERM, grace, SIGKILL), term (SIGTERM only) or ignore (stop)",
              "POLICY");
    add_span(app, "--grace", policy.grace, "From SIGTERM to SIGKILL (5s)");
    app.add_flag("--hide-nodes", hide_nodes,
                 "The command does not get REDLOCK_NODES, which may have passwords");
    nodes.add_to(app);
    app.formatter(std::make_shared<UsageOfRun>());
}

std::vector<std::string> RunArguments::program() const {
    if (!shell_command.empty() && !words.empty())
        throw std::invalid_argument{"both --command and COMMAND are given"};
    if (!shell_command.empty()) return {variable("SHELL", "/bin/sh"), "-c", shell_command};  // as flock does
    if (words.empty() && !resource.empty() && resource.find_first_not_of("0123456789") == resource.npos)
        throw std::invalid_argument{"no COMMAND: " + resource +
                                    " is a name here and no descriptor; a script keeps a lock by redlock "
                                    "acquire --while-pid $$ " +
                                    resource};
    if (words.empty())
        throw std::invalid_argument{"no COMMAND: redlock run [OPTIONS] RESOURCE -- COMMAND [ARG...]"};
    return words;
}

}  // namespace redlock::tool

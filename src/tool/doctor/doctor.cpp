#include "subcommands.hpp"

#include "arguments/lock_arguments.hpp"
#include "arguments/node_arguments.hpp"
#include "diagnosis.hpp"
#include "text/json.hpp"
#include "text/lock_status.hpp"

#include <redlock/options.hpp>

#include <iostream>
#include <stdexcept>
#include <string>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

struct DoctorArguments {
    NodeArguments nodes{};
    CheckupPlan plan{};
    const CLI::Option* probe = nullptr;
    bool json = false;

    void add_to(CLI::App& app) {
        probe = app.add_option("--probe", plan.resource,
                               "The resource to try with, if an ACL allows no other (a random one)")
                    ->type_name("RESOURCE");
        app.add_flag("--fencing", plan.lock.fencing, "Also try what fencing needs");
        app.add_flag("--fair", plan.lock.fair, "Also try what a queue needs");
        app.add_flag("--mark", plan.mark, "Start the quarantine of new nodes, together with --quarantine");
        app.add_flag("--json", json, "One JSON object on stdout");
        add_lease(app, plan.lock);
        nodes.add_to(app);
        app.footer("Exit status: 0 all is fine, 1 warnings, 2 unsafe or no majority, 64 wrong arguments");
    }
};

int doctor(const DoctorArguments& arguments) {
    auto plan = arguments.plan;
    plan.nodes = arguments.nodes.options();
    check(plan.lock, plan.nodes.node_timeout, plan.nodes.quarantine);
    if (plan.mark && plan.nodes.quarantine == 0ms)
        throw std::invalid_argument{"--mark needs --quarantine, the same as in every client"};
    if (arguments.probe->count() == 0) plan.resource = "redlock:doctor:" + random_owner();
    const auto diagnosis = diagnose(check_up(arguments.nodes.endpoints(), plan), plan);
    if (arguments.json)
        print_json(std::cout, diagnosis);
    else
        print(std::cout, diagnosis);
    return static_cast<int>(diagnosis.verdict());
}

}  // namespace

void add_doctor(CommandLine& line) {
    line.add("doctor", "Find out what is wrong with the nodes, and what to change", doctor);
}

}  // namespace redlock::tool

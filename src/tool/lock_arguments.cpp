#include "lock_arguments.hpp"

#include "span.hpp"

namespace redlock::tool {

void LeaseArguments::add_to(CLI::App& app) {
    add_span(app, "--ttl", ttl, "The lease: how long the lock outlives its holder (30s)");
    app.add_option("--drift-factor", drift_factor, "Share of the ttl by which clocks may differ (0.01)");
}

void AcquireArguments::add_to(CLI::App& app) {
    auto* const once = app.add_flag("-n,--nonblock", nonblock, "One attempt; do not wait for another holder");
    app.add_option_function<std::string>(
           "-w,--wait",
           [this](const std::string& text) {
               try {
                   wait = parse_span(text);
               } catch (const std::invalid_argument& error) {
                   throw CLI::ValidationError("--wait", "\"" + text + "\" " + error.what());
               }
           },
           "Wait that long at most (default: for as long as others hold it)")
        ->type_name("SPAN")
        ->excludes(once);
    app.add_option("-E,--conflict-exit-code", conflict_exit_code, "Exit status when another holds it (1)")
        ->check(CLI::Range(0, 255));
    app.add_flag("--fencing", fencing, "Number the holders, for the guarded store to check");
    add_span(app, "--retry-delay", retry_delay, "The longest pause between two attempts (200ms)");
}

}  // namespace redlock::tool

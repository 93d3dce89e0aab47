#include "interruption.hpp"

#include <ctime>

namespace flash_sale {

Interruption::Interruption() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&signals_, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

void Interruption::sleep(std::chrono::nanoseconds span) const {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(span);
    const timespec timeout{seconds.count(), (span - seconds).count()};
    const int signal = ::sigtimedwait(&signals_, nullptr, &timeout);
    if (signal > 0) throw Interrupted{signal};
}

}  // namespace flash_sale

#define REDLOCK_ASIO_STANDALONE
#include "one_asio_lock.hpp"

namespace redlock::test {

std::unique_ptr<OneAsio> with_standalone(RedisNodes& nodes) {
    return std::make_unique<OneAsioLock>(nodes);
}

}  // namespace redlock::test

#include "fake_dns.hpp"

#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

namespace redlock::test {

namespace {

using GetAddrInfo = int (*)(const char*, const char*, const addrinfo*, addrinfo**);

GetAddrInfo real() {
    static const auto function = reinterpret_cast<GetAddrInfo>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    return function;
}

struct Entry {
    std::vector<std::string> addresses{};
    bool hangs = false;
    std::size_t lookups = 0;
};

/// Never destroyed, because a name resolution may outlive main().
class Names {
public:
    static Names& instance() {
        static auto* const names = new Names;
        return *names;
    }

    void set(const std::string& name, std::vector<std::string> addresses, bool hangs) {
        const std::lock_guard guard{mutex_};
        auto& entry = entries_[name];
        entry.addresses = std::move(addresses);
        entry.hangs = hangs;
        changed_.notify_all();
    }

    std::size_t lookups_of(const std::string& name) {
        const std::lock_guard guard{mutex_};
        return entries_[name].lookups;
    }

    /// Blocks while the name hangs. Returns false if no test has defined the name.
    bool look_up(const std::string& name, std::vector<std::string>& addresses) {
        std::unique_lock guard{mutex_};
        if (!entries_.contains(name)) return false;
        ++entries_[name].lookups;
        changed_.wait(guard, [&] { return !entries_[name].hangs; });
        addresses = entries_[name].addresses;
        return true;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, Entry> entries_{};  // guarded by mutex_
};

/// Concatenates the results for the numeric addresses.
int chain(const std::vector<std::string>& addresses, const char* port, const addrinfo* hints,
          addrinfo** result) {
    *result = nullptr;
    for (auto** end = result; const auto& address : addresses) {
        if (const int status = real()(address.c_str(), port, hints, end); status != 0) return status;
        while (*end) end = &(*end)->ai_next;
    }
    return addresses.empty() ? EAI_NONAME : 0;
}

}  // namespace

void set_addresses(const std::string& name, const std::vector<std::string>& addresses) {
    Names::instance().set(name, addresses, false);
}

std::size_t lookups_of(const std::string& name) {
    return Names::instance().lookups_of(name);
}

HangingName::HangingName(std::string address) : address_(std::move(address)) {
    static std::atomic<int> count = 0;
    name_ = "slow" + std::to_string(++count) + ".test";
    hang();
}

HangingName::~HangingName() {
    resolve();
}

void HangingName::resolve() {
    Names::instance().set(name_, {address_}, false);
}

void HangingName::hang() {
    Names::instance().set(name_, {}, true);
}

}  // namespace redlock::test

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
    using namespace redlock::test;
    std::vector<std::string> addresses;
    const bool numeric = hints && (hints->ai_flags & AI_NUMERICHOST) != 0;
    if (!node || numeric || !Names::instance().look_up(node, addresses))
        return real()(node, service, hints, result);
    return chain(addresses, service, hints, result);
}

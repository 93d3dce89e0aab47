#include "server_info.hpp"

#include <algorithm>
#include <sstream>

namespace redlock::tool {

std::optional<std::uint64_t> sentinels_in(std::string_view info, const std::string& master) {
    // A line for each master: "master0:name=mymaster,status=ok,...,sentinels=3".
    constexpr std::string_view field = ",sentinels=";
    info.remove_prefix(std::min(info.find(":name=" + master + ","), info.size()));
    info = info.substr(0, info.find_first_of("\r\n"));
    const auto at = info.find(field);
    if (at == info.npos) return std::nullopt;
    info.remove_prefix(at + field.size());
    return detail::whole_number<std::uint64_t>(info.substr(0, info.find(',')));
}

Version parse_version(std::string_view text) {
    Version version{};
    char dot = 0;
    std::istringstream{std::string{text}} >> version[0] >> dot >> version[1] >> dot >> version[2];
    return version;
}

std::string text_of_age(std::chrono::seconds age) {
    using namespace std::chrono_literals;
    if (age < 2min) return std::to_string(age / 1s) + " s";
    if (age < 2h) return std::to_string(age / 1min) + " min";
    if (age < 48h) return std::to_string(age / 1h) + " h";
    return std::to_string(age / 24h) + " d";
}

ServerInfo ServerInfo::parse(std::string_view info) {
    const auto value = [&](const std::string& name) {
        return std::string{detail::line_of_info(info, name + ":")};
    };
    const auto number = [&](const char* name) { return detail::whole_number<std::uint64_t>(value(name)); };
    ServerInfo it;
    // All makes of servers report a redis_version, and some also report a version of their own.
    it.redis_version = value("redis_version");
    it.make = it.redis_version.empty() ? "" : "redis";
    it.version = it.redis_version;
    if (value("executable").find("keydb") != std::string::npos) it.make = "keydb";
    for (const std::string make : {"dragonfly", "valkey"})
        if (auto version = value(make + "_version"); !version.empty()) {
            it.make = make;
            it.version = std::move(version);
        }
    it.run_id = value("run_id");
    it.replication_id = value("master_replid");
    it.mode = value("redis_mode");
    it.role = value("role");
    if (it.role == "slave") it.role = "replica";
    it.replicas = number("connected_slaves");
    it.uptime = duration_of<std::chrono::seconds>(value("uptime_in_seconds"));
    if (const auto enabled = number("aof_enabled")) it.appendonly = *enabled != 0;
    it.used_memory = number("used_memory");
    it.max_memory = number("maxmemory");
    it.eviction = value("maxmemory_policy");
    return it;
}

}  // namespace redlock::tool

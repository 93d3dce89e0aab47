// examples/metrics.cpp, as Prometheus sees it.
#include "live_world.hpp"
#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string>

namespace redlock::test {
namespace {

using support::ChildProcess;
using support::TemporaryDirectory;

std::string contents(const std::filesystem::path& path) {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
}

/// What an HTTP server on that port of 127.0.0.1 answers to GET /metrics.
std::string scrape(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string answer;
    const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ::send(socket, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
        std::array<char, 4096> part;
        for (ssize_t length = 1; (length = ::recv(socket, part.data(), part.size(), 0)) > 0;)
            answer.append(part.data(), static_cast<std::size_t>(length));
    }
    ::close(socket);
    return answer;
}

// Issue point 4. Rounds, votes, connections and nodes in trouble are all there to be seen.
TEST(TheMetricsExample, IsScraped) {
    Cluster servers{3};
    const TemporaryDirectory directory;
    const auto output = directory / "output";
    ChildProcess example{
        {.words = {REDLOCK_METRICS_EXAMPLE},
         .environment = {"REDLOCK_NODES=" + servers.uri_list(), "METRICS_ADDRESS=127.0.0.1:0"},
         .output = output}};
    ASSERT_TRUE(wait_until([&] { return contents(output).ends_with("/metrics\n"); })) << contents(output);
    const std::string url = "http://127.0.0.1:";
    const auto port = std::stoul(contents(output).substr(contents(output).find(url) + url.size()));
    servers[1].kill();
    std::string metrics;
    EXPECT_TRUE(wait_until([&] {
        metrics = scrape(static_cast<std::uint16_t>(port));
        return metrics.find("redlock_back_offs_total{") != std::string::npos;
    }));
    for (const std::string& expected :
         {std::string{"200 OK"}, std::string{"redlock_round_seconds_count{command=\"acquire\"}"},
          std::string{"redlock_round_seconds_count{command=\"release\"}"},
          "redlock_votes_total{node=\"" + servers[0].name() + "\",vote=\"granted\"}",
          "redlock_connections{node=\"" + servers[2].name() + "\"} 1",
          "cause=\"connection failed\",node=\"" + servers[1].name() + "\""})
        EXPECT_THAT(metrics, HasSubstr(expected));
}

}  // namespace
}  // namespace redlock::test

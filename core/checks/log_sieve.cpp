// The sieve for logs: what it counts, what it hands out, torn and endless lines, and any bytes at all in any blocks.
#include "log_sieve.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "expect.hpp"

namespace {

using namespace busbw;
using namespace busbw::checks;

const std::string head = "node1:10:11 [0] NCCL INFO ";

std::vector<SievedLine> read(LogSieve& sieve, const std::string& text, std::size_t block) {
    std::vector<SievedLine> out;
    for (std::size_t start = 0; start < text.size(); start += block) {
        const auto part = sieve.feed(std::string_view{text}.substr(start, block));
        out.insert(out.end(), part.begin(), part.end());
    }
    const auto rest = sieve.finish();
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
}

void counts_connections_in_blocks_of_any_size() {
    const std::string text = head + "Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0(12)/GDRDMA\n" + head +
                             "Channel 01/0 : 0[0] -> 1[1] [send] via NET/IB/0(13)/GDRDMA comm 0x1 nRanks 02\n" + head +
                             "Using network IB";
    for (std::size_t block = 1; block <= text.size(); block += 7) {
        LogSieve sieve{{}};
        const auto lines = read(sieve, text, block);
        expect(lines.size() == 1 && lines[0].number == 3 && lines[0].text == "Using network IB", "one line is left");
        expect(sieve.ways() == std::vector<std::string>{"NET/IB/0(n)/GDRDMA"}, "proxies are one way");
        expect(sieve.connections().size() == 1 && sieve.connections().begin()->second == 2, "both are counted");
        expect(sieve.speakers() == std::vector<std::string>{"node1:10:0"}, "one speaks");
        expect(sieve.lines() == 3 && sieve.nccl_lines() == 3, "three lines");
    }
}

void finds_the_host_behind_a_piece_of_another_line() {
    LogSieve sieve{{}};
    read(sieve, head + "a\n12.5 0no" + head + "b\nnode1:10:11 [0] NCCL INFO Chan" + head + "c\n", 4096);
    expect(sieve.speakers().size() == 1, "pieces make no speaker");
}

void ignores_a_shape_and_drops_endless_lines() {
    LogSieve sieve{{"needle"}};
    const auto first = sieve.feed(head + "Ring 00 : 1 -> 2\n");
    sieve.ignore(first.at(0).shape);
    expect(sieve.feed(head + "Ring 17 : 3 -> 44\n").empty(), "the shape is ignored");
    expect(read(sieve, std::string(3U << 20U, 'x') + "\nneedle\nhay\n", 1000).size() == 1, "the needle is found");
    expect(sieve.too_long() == 1, "one line is too long");
}

void finds_needles_wherever_they_stand() {
    const Needles needles{{"ab", "abc", "a\xff", "ba", "z"}};
    for (const std::string_view with : {"ab", "xab", "abx", "xxa\xff", "bba", "z", "xz"}) {
        expect(needles.any_in(with), "it is found");
    }
    for (const std::string_view without : {"", "a", "b", "aa", "ac", "cb"}) {
        expect(!needles.any_in(without), "nothing is found");
    }
    expect(!Needles{{}}.any_in("ab"), "where nothing is looked for nothing is found");
}

void knows_a_learned_line_by_the_numbers_that_count() {
    LogSieve sieve{{"error"}};
    const std::string line = "rank 7: error at 0x1f of fe80::12ab, node a1b2c3";
    const auto first = sieve.feed(line + "\n");
    sieve.learn(first.at(0).text, {{5, 6}}, 4);
    const auto speaker_of = [&](const std::string& text) { return sieve.feed(text + "\n").at(0).speaker; };
    expect(speaker_of(line) == -6, "the same line is known");
    expect(speaker_of("rank 7: error at 0x99 of fe80::9, node 12") == -6, "other addresses make no difference");
    expect(speaker_of("rank 8: error at 0x1f of fe80::12ab, node a1b2c3") == -1, "another rank does");
    expect(speaker_of("rank 7: error at 0x1f of fe80::12ab, host a1b2c3") == -1, "another word does");
    expect(speaker_of("rank 7: error at 0x1f of fe80::face, node a1b2c3") == -1, "a word without a digit is a word");
    std::string many = "error";
    for (int count = 0; count < 300; ++count) {
        many += " 1";
    }
    sieve.learn(many, {}, 5);
    expect(speaker_of(many) == -1, "a line with too many numbers is not learned");
    sieve.forget();
    expect(speaker_of(line) == -1, "it is forgotten");
}

void takes_any_bytes() {
    std::mt19937 chance{1};
    const std::vector<std::string> pieces{"NCCL INFO ", ":",
                                          "[",          "]",
                                          " ",          "1",
                                          "Channel ",   "/",
                                          " -> ",       "via ",
                                          "\n",         "NET/(",
                                          head,         "99999999999999999999",
                                          "\x1b",       std::string(1, '\0'),
                                          "\xff"};
    for (int round = 0; round < 2000; ++round) {
        std::string text;
        for (int count = 0; count < 40; ++count) {
            text += pieces[chance() % pieces.size()];
        }
        LogSieve sieve{{"NCCL"}};
        read(sieve, text, 1 + chance() % 30);
        const auto newlines = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
        expect(sieve.lines() == newlines + (text.ends_with('\n') ? 0U : 1U), "every line is counted");
    }
}

}  // namespace

int main() {
    counts_connections_in_blocks_of_any_size();
    finds_the_host_behind_a_piece_of_another_line();
    ignores_a_shape_and_drops_endless_lines();
    finds_needles_wherever_they_stand();
    knows_a_learned_line_by_the_numbers_that_count();
    takes_any_bytes();
    return verdict();
}

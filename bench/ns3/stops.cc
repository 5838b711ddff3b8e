// The transfer of scenarios/papers/stops.toml in ns-3: 1 GB from a to b over a router whose policer lets 500 Mbit/s
// pass. Prints virtual, wall and CPU time of the simulation, without setting it up.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <chrono>
#include <cstdio>
#include <ctime>

using namespace ns3;

// ns-3 has no policer: its token bucket (TbfQueueDisc) queues. This one drops, where ns-3 lets receivers lose packets.
// As in the scenario, tokens come in steps and pay for IP packets.
class Policer : public ErrorModel
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("farpace::Policer").SetParent<ErrorModel>().AddConstructor<Policer>();
        return tid;
    }

    uint64_t dropped = 0;

  private:
    static constexpr int64_t REFILL_NS = 490'000;
    static constexpr int64_t STEP = 30'625; // bytes: 490 us at 500 Mbit/s
    static constexpr int64_t BURST = 16'000'000;
    static constexpr int64_t PPP = 2; // header of the point-to-point device

    bool DoCorrupt(Ptr<Packet> packet) override
    {
        const int64_t steps = Simulator::Now().GetNanoSeconds() / REFILL_NS;
        m_tokens = std::min(BURST, m_tokens + (steps - m_steps) * STEP);
        m_steps = steps;
        const int64_t bytes = static_cast<int64_t>(packet->GetSize()) - PPP;
        if (bytes > m_tokens)
        {
            dropped++;
            return true;
        }
        m_tokens -= bytes;
        return false;
    }

    void DoReset() override
    {
        m_tokens = BURST;
        m_steps = 0;
    }

    int64_t m_tokens = BURST;
    int64_t m_steps = 0;
};

int
main(int argc, char* argv[])
{
    uint64_t size = 1'000'000'000;
    uint32_t window = 2500;
    std::string congestion = "TcpLinuxReno";
    CommandLine cmd;
    cmd.AddValue("size", "bytes to send", size);
    cmd.AddValue("window", "receive window in segments", window);
    cmd.AddValue("congestion", "TcpLinuxReno, TcpNewReno, ...", congestion);
    cmd.Parse(argc, argv);

    const uint32_t mss = 1448;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::" + congestion));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(3));
    Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(1000 * mss));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(window * mss));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(16'000'000));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    NodeContainer nodes(3); // a, router, b
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    access.SetChannelAttribute("Delay", StringValue("0ms"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("10000p"));
    PointToPointHelper wan;
    wan.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    wan.SetChannelAttribute("Delay", StringValue("5ms"));
    wan.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));
    NetDeviceContainer near = access.Install(nodes.Get(0), nodes.Get(1));
    NetDeviceContainer far = wan.Install(nodes.Get(1), nodes.Get(2));
    Ptr<Policer> policer = CreateObject<Policer>();
    near.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(policer));

    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses("10.0.1.0", "255.255.255.0");
    addresses.Assign(near);
    addresses.SetBase("10.0.2.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(far);
    // Only the devices' own queues, as in the scenario.
    TrafficControlHelper queues;
    queues.Uninstall(near);
    queues.Uninstall(far);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const uint16_t port = 5001;
    PacketSinkHelper sinks("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    Ptr<PacketSink> sink = sinks.Install(nodes.Get(2)).Get(0)->GetObject<PacketSink>();
    Time last;
    sink->TraceConnectWithoutContext("Rx",
                                     MakeBoundCallback(
                                         +[](Time* at, Ptr<const Packet>, const Address&) { *at = Simulator::Now(); },
                                         &last));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), port));
    bulk.SetAttribute("MaxBytes", UintegerValue(size));
    bulk.SetAttribute("SendSize", UintegerValue(mss));
    bulk.Install(nodes.Get(0));

    const auto start = std::chrono::steady_clock::now();
    const std::clock_t cpu_start = std::clock();
    Simulator::Stop(Seconds(200));
    Simulator::Run();
    const double cpu = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;

    const double packets = static_cast<double>(sink->GetTotalRx()) / mss;
    std::printf("ns-3 %s: %.1f MB delivered in %.2f s of virtual time, %lu dropped\n"
                "  %.2f s wall, %.2f s CPU, %.0f data packets per second of CPU\n",
                congestion.c_str(),
                static_cast<double>(sink->GetTotalRx()) / 1e6,
                last.GetSeconds(),
                policer->dropped,
                wall.count(),
                cpu,
                packets / cpu);
    Simulator::Destroy();
    return sink->GetTotalRx() == size ? 0 : 1;
}

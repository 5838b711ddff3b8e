// Carries one TCP stream between gVisor's netstack and the kernel, on a TUN device that exists already, or on an Ethernet
// interface by a packet socket with super-segments:
//
//	gvisor tun|packet INTERFACE out|in
//
// It listens on port 5001 of 10.79.0.2, sends or reads for ever, and ends when its standard input does.
package main

import (
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gvisor:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 4 {
		return fmt.Errorf("expected tun or packet, the name of an interface, and out or in")
	}
	options, err := device(os.Args[1], os.Args[2])
	if err != nil {
		return err
	}
	link, err := fdbased.New(options)
	if err != nil {
		return err
	}
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	for _, option := range []tcpip.SettableTransportProtocolOption{
		&tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: 4 << 20, Max: 16 << 20},
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: 4 << 20, Max: 16 << 20},
	} {
		if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return fmt.Errorf("%s", err)
		}
	}
	sack := tcpip.TCPSACKEnabled(true)
	if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack); err != nil {
		return fmt.Errorf("%s", err)
	}
	if err := s.CreateNIC(1, link); err != nil {
		return fmt.Errorf("%s", err)
	}
	address := tcpip.AddrFrom4([4]byte{10, 79, 0, 2})
	bound := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: address.WithPrefix()}
	if err := s.AddProtocolAddress(1, bound, stack.AddressProperties{}); err != nil {
		return fmt.Errorf("%s", err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})
	listener, err := gonet.ListenTCP(s, tcpip.FullAddress{NIC: 1, Addr: address, Port: 5001}, ipv4.ProtocolNumber)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println("listening")
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	buffer := make([]byte, 1<<20)
	for {
		if os.Args[3] == "out" {
			_, err = conn.Write(buffer)
		} else {
			_, err = conn.Read(buffer)
		}
		if err != nil {
			return nil
		}
	}
}

// device opens the interface.
func device(kind, name string) (*fdbased.Options, error) {
	if kind == "tun" {
		fd, err := tun.Open(name)
		return &fdbased.Options{FDs: []int{fd}, MTU: 1500}, err
	}
	iface, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	const everything = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK, everything)
	if err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return nil, err
	}
	for _, option := range []int{unix.SO_RCVBUFFORCE, unix.SO_SNDBUFFORCE} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 4<<20); err != nil {
			return nil, err
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: iface.Index}); err != nil {
		return nil, err
	}
	return &fdbased.Options{
		FDs:                []int{fd},
		MTU:                1500,
		EthernetHeader:     true,
		Address:            tcpip.LinkAddress(iface.HardwareAddr),
		GSOMaxSize:         65535,
		GVisorGSOEnabled:   false,
		RXChecksumOffload:  true,
		TXChecksumOffload:  false,
		PacketDispatchMode: fdbased.RecvMMsg,
	}, nil
}

-- Shows CDL in Wireshark and tshark (4.0 or later): the flag among TCP's reserved bits, and the options in the
-- experimental kinds 253 and 254 with the identifier 0xCD1A. docs/trace.md lists the fields.
--
--   tshark -X lua_script:tools/wireshark/farpace-cdl.lua -o cdl.bit:4 -r a.pcapng -Y cdl.request
--
-- In Wireshark: copy it to the folder that Help > About > Folders calls "Personal Lua Plugins".

local cdl = Proto("cdl", "Cancel Delayed Acknowledgment")

cdl.prefs.bit = Pref.uint("Flag bit (4, 5 or 6)", 4, "Which bit of the header's 13th byte is the flag, from the left")

local field = {
    flag = ProtoField.bool("cdl.flag", "Flag"),
    only = ProtoField.bool("cdl.only", "Flag in place of ACK (classic request)"),
    ack = ProtoField.bool("cdl.ack", "Flag beside ACK, without data (confirmation)"),
    allow = ProtoField.bool("cdl.allow", "CDL-Allow"),
    request = ProtoField.bool("cdl.request", "Asks for an ACK at once"),
    confirm = ProtoField.bool("cdl.confirm", "Answers a request"),
    delay_us = ProtoField.uint32("cdl.delay_us", "ACK was held back, microseconds"),
    version = ProtoField.uint8("cdl.version", "Version"),
    capabilities = ProtoField.uint8("cdl.capabilities", "Capabilities (1 asks, 2 confirms, 4 flag, 8 tells delay)",
        base.HEX),
}
for _, f in pairs(field) do
    table.insert(cdl.fields, f)
end
local unknown_delay = ProtoExpert.new("cdl.delay_unknown", "The delay is unknown, or longer than can be told",
    expert.group.PROTOCOL, expert.severity.CHAT)
cdl.experts = { unknown_delay }

local tcp_flags = Field.new("tcp.flags")
local tcp_options = Field.new("tcp.options")
local tcp_len = Field.new("tcp.len")
local icmp, icmpv6 = Field.new("icmp.type"), Field.new("icmpv6.type")

local EXPERIMENT = { [253] = true, [254] = true }
local SYN, RST, ACK = 0x002, 0x004, 0x010

local function has(flags, mask)
    return math.floor(flags / mask) % 2 == 1
end

-- Calls found(data, range) for each option with our identifier. data: what follows the identifier. Stops at a length that
-- cannot be.
local function each_option(options, found)
    local bytes, at = options.range:bytes(), 0
    while at < bytes:len() do
        local kind = bytes:get_index(at)
        if kind == 0 then return end
        local len = 1
        if kind ~= 1 then
            if at + 1 >= bytes:len() then return end
            len = bytes:get_index(at + 1)
            if len < 2 or at + len > bytes:len() then return end
            if EXPERIMENT[kind] and len >= 4 and bytes:get_index(at + 2) == 0xcd and bytes:get_index(at + 3) == 0x1a then
                local data = {}
                for i = at + 4, at + len - 1 do
                    table.insert(data, bytes:get_index(i))
                end
                found(data, options.range(at, len))
            end
        end
        at = at + len
    end
end

function cdl.dissector(_, pinfo, root)
    local all_flags = { tcp_flags() }
    -- More than one, as in a tunnel: nobody could tell whose options are whose. ICMP quotes segments.
    if #all_flags ~= 1 or icmp() or icmpv6() then return end
    local flags, flags_range = all_flags[1].value, all_flags[1].range
    local length = tcp_len()
    local data = length ~= nil and length.value > 0

    local tree
    local function add(f, range, value)
        tree = tree or root:add(cdl)
        return tree:add(f, range, value)
    end

    local bit = math.min(math.max(cdl.prefs.bit, 4), 6)
    if has(flags, 2 ^ (15 - bit)) and not has(flags, SYN) and not has(flags, RST) then
        add(field.flag, flags_range, true)
        if not has(flags, ACK) then
            add(field.only, flags_range, true)
            add(field.request, flags_range, true)
        elseif data then
            add(field.request, flags_range, true)
        else
            add(field.ack, flags_range, true)
            add(field.confirm, flags_range, true)
        end
    end

    local options = tcp_options()
    if options then
        each_option(options, function(bytes, range)
            local first = bytes[1]
            if #bytes == 0 then
                add(field.allow, range, true)
            elseif #bytes == 1 and first == 1 then
                add(field.request, range, true)
            elseif #bytes == 1 and math.floor(first / 16) == 1 then
                add(field.version, range, 1)
                add(field.capabilities, range, first % 16)
            elseif #bytes == 3 and first == 2 then
                local units = bytes[2] * 256 + bytes[3]
                local item = add(field.confirm, range, true)
                if units == 0xffff then
                    item:add_proto_expert_info(unknown_delay)
                else
                    add(field.delay_us, range, units * 8)
                end
            end
        end)
    end
    if tree then
        pinfo.cols.info:append(" [CDL]")
    end
end

register_postdissector(cdl)

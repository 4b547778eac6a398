// One processor's part of an ACPI table that gives an emulated machine frequency scaling and an idle state (@N@ stands
// for the processor's number).
//
// Both performance registers are the scratch register of the second serial port (0x2FF): it stores what is written
// and gives it back, and each state's status value equals its control value, so every change of frequency "succeeds".
    External (\_SB.CPUS.C@HEX@, DeviceObj)
    Scope (\_SB.CPUS.C@HEX@)
    {
        Name (_PCT, Package ()
        {
            ResourceTemplate () { Register (SystemIO, 8, 0, 0x2FF, 1) },
            ResourceTemplate () { Register (SystemIO, 8, 0, 0x2FF, 1) }
        })
        // MHz, mW, transition and bus-master latency in us, control, status
        Name (_PSS, Package ()
        {
            Package () { 3000, 3000, 10, 10, 0x30, 0x30 },
            Package () { 2000, 2000, 10, 10, 0x20, 0x20 },
            Package () { 1000, 1000, 10, 10, 0x10, 0x10 }
        })
        // A domain of its own (number @N@, one processor), coordinated by the operating system
        Name (_PSD, Package () { Package () { 5, 0, @N@, 0xFC, 1 } })
        // One idle state, C1, entered by halting: type, us to wake from it, mW. Beside it Linux has one that polls
        Name (_CST, Package ()
        {
            1,
            Package () { ResourceTemplate () { Register (FFixedHW, 0, 0, 0) }, 1, 2, 500 }
        })
        Method (_PPC, 0, NotSerialized) { Return (0) }
    }

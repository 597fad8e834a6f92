// A client in Go, whose runtime makes its own system calls: KFD's version, a
// file of the card, goroutines on several threads with collections of garbage
// and calls meanwhile, a program that is executed, and a fault that is
// recovered from.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

const getVersion = 0x80084b01

func churn(wg *sync.WaitGroup) {
	defer wg.Done()
	for j := 0; j < 10; j++ {
		_ = make([]byte, 1<<20)
		if _, err := os.Stat("/dev/kfd"); err != nil {
			fmt.Println(err)
		}
		runtime.GC()
	}
}

func main() {
	var v [2]uint32
	var wg sync.WaitGroup
	var nothing *int

	fd, err := syscall.Open("/dev/kfd", syscall.O_RDWR, 0)
	if err != nil {
		fmt.Println(err)
	}
	syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), getVersion,
		uintptr(unsafe.Pointer(&v)))
	fmt.Println(v)
	id, _ := os.ReadFile("/sys/class/kfd/kfd/topology/nodes/1/gpu_id")
	fmt.Print(string(id))
	for i := 0; i < 16; i++ {
		wg.Add(1)
		go churn(&wg)
	}
	wg.Wait()
	out, _ := exec.Command("ls", "/dev/dri").Output()
	fmt.Print(string(out))
	defer func() { fmt.Println(recover() != nil) }()
	fmt.Println(*nothing)
}

package cl

// A Fn is a function of OpenCL.
type Fn uint8

// The functions that the backend uses. String is their name in C.
const (
	GetPlatformIDs Fn = iota
	GetPlatformInfo
	GetDeviceIDs
	GetDeviceInfo
	CreateContext
	ReleaseContext
	CreateCommandQueue
	ReleaseCommandQueue
	CreateBuffer
	ReleaseMemObject
	CreateProgramWithSource
	CreateProgramWithBinary
	BuildProgram
	GetProgramInfo
	GetProgramBuildInfo
	ReleaseProgram
	CreateKernel
	ReleaseKernel
	SetKernelArg
	EnqueueNDRangeKernel
	EnqueueReadBuffer
	EnqueueWriteBuffer
	EnqueueFillBuffer
	EnqueueMapBuffer
	EnqueueUnmapMemObject
	EnqueueMarkerWithWaitList
	EnqueueBarrierWithWaitList
	EnqueueMigrateMemObjects
	Flush
	Finish
	WaitForEvents
	GetEventInfo
	RetainEvent
	ReleaseEvent

	numFns
)

var fns = [numFns]string{
	"clGetPlatformIDs", "clGetPlatformInfo", "clGetDeviceIDs", "clGetDeviceInfo",
	"clCreateContext", "clReleaseContext", "clCreateCommandQueue", "clReleaseCommandQueue",
	"clCreateBuffer", "clReleaseMemObject",
	"clCreateProgramWithSource", "clCreateProgramWithBinary", "clBuildProgram", "clGetProgramInfo", "clGetProgramBuildInfo", "clReleaseProgram",
	"clCreateKernel", "clReleaseKernel", "clSetKernelArg",
	"clEnqueueNDRangeKernel", "clEnqueueReadBuffer", "clEnqueueWriteBuffer", "clEnqueueFillBuffer",
	"clEnqueueMapBuffer", "clEnqueueUnmapMemObject", "clEnqueueMarkerWithWaitList", "clEnqueueBarrierWithWaitList",
	"clEnqueueMigrateMemObjects", "clFlush", "clFinish", "clWaitForEvents", "clGetEventInfo", "clRetainEvent", "clReleaseEvent",
}

// String returns the function's name in C.
func (f Fn) String() string { return fns[f] }

// makes reports whether f returns a handle or an address, and writes its code to its last argument.
func (f Fn) makes() bool {
	switch f {
	case CreateContext, CreateCommandQueue, CreateBuffer, CreateProgramWithSource, CreateProgramWithBinary, CreateKernel, EnqueueMapBuffer:
		return true
	}
	return false
}

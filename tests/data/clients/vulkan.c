/*
 * A Vulkan program: compute shaders on the first device's queue that is for
 * compute alone, results compared with C.
 *
 *	vulkan FOLDER		with the shaders of vulkan.comp as NAME.spv
 *
 * It prints "good WHAT" or "bad WHAT" for each check.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

enum { N = 1000, ROOM = 1024, FACTOR = 3, BUCKETS = 37 };

static VkInstance instance;
static VkPhysicalDevice card;
static VkDevice device;
static VkQueue queue;
static uint32_t family;
static VkCommandBuffer commands;
static VkDescriptorSetLayout set_layout;
static VkPipelineLayout layout;
static VkDescriptorSet set;
static VkBuffer buffer[2];
static uint32_t *data[2]; /* [ROOM]: in, out */

static void check(VkResult r, const char *what)
{
	if (r) {
		printf("bad %s: VkResult %d\n", what, r);
		exit(1);
	}
}
#define CHECK(call) check((call), #call)

static void tell(bool good, const char *what)
{
	printf("%s %s\n", good ? "good" : "bad", what);
}

static void open_card(void)
{
	const VkApplicationInfo app = {
		.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
		.apiVersion = VK_API_VERSION_1_2,
	};
	const VkInstanceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.pApplicationInfo = &app,
	};
	VkPhysicalDeviceProperties p;
	uint32_t n = 1;

	CHECK(vkCreateInstance(&info, NULL, &instance));
	VkResult r = vkEnumeratePhysicalDevices(instance, &n, &card);
	check(r == VK_INCOMPLETE ? VK_SUCCESS : r, "a device");
	vkGetPhysicalDeviceProperties(card, &p);
	tell(strstr(p.deviceName, "GFX1100") != NULL, "the card is a GFX1100");
	tell(p.vendorID == 0x1002 && p.deviceID == 0x744c,
	     "of the right identity");
}

static void choose_family(void)
{
	VkQueueFamilyProperties p[8];
	uint32_t n = 8;

	vkGetPhysicalDeviceQueueFamilyProperties(card, &n, p);
	for (uint32_t i = 0; i < n; i++)
		if (p[i].queueFlags & VK_QUEUE_COMPUTE_BIT &&
		    !(p[i].queueFlags & VK_QUEUE_GRAPHICS_BIT))
			family = i;
	tell(family > 0, "there are queues for compute alone");
}

static void open_device(void)
{
	const float priority = 1;
	const VkDeviceQueueCreateInfo q = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueFamilyIndex = family, .queueCount = 1,
		.pQueuePriorities = &priority,
	};
	VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
		.timelineSemaphore = VK_TRUE,
	};
	const VkDeviceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.pNext = &timeline,
		.queueCreateInfoCount = 1, .pQueueCreateInfos = &q,
	};
	const VkCommandPoolCreateInfo pool_info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
		.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
		.queueFamilyIndex = family,
	};
	VkCommandBufferAllocateInfo buffers = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
		.commandBufferCount = 1,
	};

	CHECK(vkCreateDevice(card, &info, NULL, &device));
	vkGetDeviceQueue(device, family, 0, &queue);
	CHECK(vkCreateCommandPool(device, &pool_info, NULL,
				  &buffers.commandPool));
	CHECK(vkAllocateCommandBuffers(device, &buffers, &commands));
}

/* Memory that the host sees and that needs no flush. */
static uint32_t visible_type(uint32_t types)
{
	const VkMemoryPropertyFlags want =
		VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
		VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
	VkPhysicalDeviceMemoryProperties p;

	vkGetPhysicalDeviceMemoryProperties(card, &p);
	for (uint32_t i = 0; i < p.memoryTypeCount; i++)
		if (types >> i & 1 &&
		    (p.memoryTypes[i].propertyFlags & want) == want)
			return i;
	check(VK_ERROR_UNKNOWN, "host visible memory");
	return 0;
}

static void make_buffer(int i)
{
	const VkBufferCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
		.size = ROOM * 4,
		.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
	};
	VkMemoryAllocateInfo memory = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
	};
	VkMemoryRequirements need;
	VkDeviceMemory m;
	void *p;

	CHECK(vkCreateBuffer(device, &info, NULL, &buffer[i]));
	vkGetBufferMemoryRequirements(device, buffer[i], &need);
	memory.allocationSize = need.size;
	memory.memoryTypeIndex = visible_type(need.memoryTypeBits);
	CHECK(vkAllocateMemory(device, &memory, NULL, &m));
	CHECK(vkBindBufferMemory(device, buffer[i], m, 0));
	CHECK(vkMapMemory(device, m, 0, VK_WHOLE_SIZE, 0, &p));
	data[i] = p;
}

static void make_layout(void)
{
	const VkDescriptorSetLayoutBinding binding[2] = {
		{ 0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
		  VK_SHADER_STAGE_COMPUTE_BIT, NULL },
		{ 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
		  VK_SHADER_STAGE_COMPUTE_BIT, NULL },
	};
	const VkDescriptorSetLayoutCreateInfo sets = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
		.bindingCount = 2, .pBindings = binding,
	};
	const VkPushConstantRange push = { VK_SHADER_STAGE_COMPUTE_BIT, 0, 8 };
	const VkPipelineLayoutCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
		.setLayoutCount = 1, .pSetLayouts = &set_layout,
		.pushConstantRangeCount = 1, .pPushConstantRanges = &push,
	};

	CHECK(vkCreateDescriptorSetLayout(device, &sets, NULL, &set_layout));
	CHECK(vkCreatePipelineLayout(device, &info, NULL, &layout));
}

static void make_set(void)
{
	const VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
					    2 };
	const VkDescriptorPoolCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
		.maxSets = 1, .poolSizeCount = 1, .pPoolSizes = &size,
	};
	VkDescriptorSetAllocateInfo sets = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
		.descriptorSetCount = 1, .pSetLayouts = &set_layout,
	};

	CHECK(vkCreateDescriptorPool(device, &info, NULL,
				     &sets.descriptorPool));
	CHECK(vkAllocateDescriptorSets(device, &sets, &set));
	for (uint32_t i = 0; i < 2; i++) {
		const VkDescriptorBufferInfo b = { buffer[i], 0,
						   VK_WHOLE_SIZE };
		const VkWriteDescriptorSet w = {
			.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
			.dstSet = set, .dstBinding = i, .descriptorCount = 1,
			.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
			.pBufferInfo = &b,
		};
		vkUpdateDescriptorSets(device, 1, &w, 0, NULL);
	}
}

static VkPipeline load_shader(const char *folder, const char *name)
{
	static uint32_t code[1 << 14];
	VkShaderModuleCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
		.pCode = code,
	};
	VkComputePipelineCreateInfo p = {
		.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = {
			.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
			.stage = VK_SHADER_STAGE_COMPUTE_BIT,
			.pName = "main",
		},
		.layout = layout,
	};
	VkPipeline pipeline;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.spv", folder, name);
	FILE *f = fopen(path, "rb");
	if (!f)
		check(VK_ERROR_UNKNOWN, path);
	info.codeSize = fread(code, 1, sizeof(code), f);
	fclose(f);
	CHECK(vkCreateShaderModule(device, &info, NULL, &p.stage.module));
	CHECK(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &p, NULL,
				       &pipeline));
	return pipeline;
}

static void record_commands(VkPipeline pipeline, uint32_t k)
{
	const VkCommandBufferBeginInfo begin = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
	};
	const uint32_t push[2] = { N, k };

	CHECK(vkBeginCommandBuffer(commands, &begin));
	vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
	vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
				layout, 0, 1, &set, 0, NULL);
	vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 8,
			   push);
	vkCmdDispatch(commands, (N + 63) / 64, 1, 1);
	CHECK(vkEndCommandBuffer(commands));
}

/* With a fence, or with a point of a timeline. */
static void run_fence(void)
{
	const VkFenceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO,
	};
	const VkSubmitInfo submit = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.commandBufferCount = 1, .pCommandBuffers = &commands,
	};
	VkFence fence;

	CHECK(vkCreateFence(device, &info, NULL, &fence));
	CHECK(vkQueueSubmit(queue, 1, &submit, fence));
	CHECK(vkWaitForFences(device, 1, &fence, VK_TRUE, 60000000000ull));
	vkDestroyFence(device, fence, NULL);
}

static void run_timeline(void)
{
	const VkSemaphoreTypeCreateInfo type = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
		.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
	};
	const VkSemaphoreCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
		.pNext = &type,
	};
	const uint64_t point = 42;
	const VkTimelineSemaphoreSubmitInfo values = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.signalSemaphoreValueCount = 1,
		.pSignalSemaphoreValues = &point,
	};
	VkSemaphore semaphore;
	VkSubmitInfo submit = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = &values,
		.commandBufferCount = 1, .pCommandBuffers = &commands,
		.signalSemaphoreCount = 1, .pSignalSemaphores = &semaphore,
	};
	VkSemaphoreWaitInfo wait = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
		.semaphoreCount = 1, .pSemaphores = &semaphore,
		.pValues = &point,
	};
	uint64_t reached = 0;

	CHECK(vkCreateSemaphore(device, &info, NULL, &semaphore));
	CHECK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
	CHECK(vkWaitSemaphores(device, &wait, 60000000000ull));
	CHECK(vkGetSemaphoreCounterValue(device, semaphore, &reached));
	tell(reached == point, "the point of a timeline is reached");
	vkDestroySemaphore(device, semaphore, NULL);
}

/* ---- what each shader should give: y[i], or close to it ---- */

static uint32_t want_shared(uint32_t i)
{
	uint32_t sum = 0;

	for (uint32_t j = 0; j < 64; j++) {
		uint32_t at = i / 64 * 64 + j;
		sum += at < N ? data[0][at] * (j + 1) : 0;
	}
	return data[0][i] * FACTOR + sum;
}

static bool is_float(uint32_t i, uint32_t bits)
{
	double x = (float)data[0][i], want = sqrt(x) * FACTOR + 1 / (x + 1);
	float got;

	memcpy(&got, &bits, 4);
	return fabs(got - want) <= 1e-6 * (1 + want);
}

static uint32_t want_count(uint32_t bucket)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < N; i++)
		n += data[0][i] % BUCKETS == bucket;
	return bucket < BUCKETS ? n : 0;
}

static uint32_t want_steps(uint32_t i)
{
	uint32_t v = data[0][i] + 1, steps = 0;

	while (v != 1 && steps < 1000) {
		v = v & 1 ? 3 * v + 1 : v / 2;
		steps++;
	}
	return steps;
}

static uint32_t want_sum(uint32_t i)
{
	uint32_t sum = 0;

	for (uint32_t k = 0; k < N; k++)
		sum += data[0][k];
	return i ? 0 : sum;
}

static const struct {
	const char *name;
	uint32_t k;
	uint32_t (*want)(uint32_t i); /* NULL: is_float() */
	void (*run)(void);
} shaders[] = {
	{ "shared", FACTOR, want_shared, run_fence },
	{ "floats", FACTOR, NULL, run_fence },
	{ "atomics", BUCKETS, want_count, run_timeline },
	{ "branches", FACTOR, want_steps, run_fence },
	{ "subgroups", FACTOR, want_sum, run_timeline },
};

static void run_shader(const char *folder, size_t k)
{
	VkPipeline pipeline = load_shader(folder, shaders[k].name);
	uint32_t wrong = 0;

	memset(data[1], 0, ROOM * 4);
	record_commands(pipeline, shaders[k].k);
	shaders[k].run();
	for (uint32_t i = 0; i < N; i++)
		wrong += shaders[k].want ?
				 data[1][i] != shaders[k].want(i) :
				 !is_float(i, data[1][i]);
	for (uint32_t i = N; i < ROOM; i++)
		wrong += data[1][i] != 0;
	tell(!wrong, shaders[k].name);
	vkDestroyPipeline(device, pipeline, NULL);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	open_card();
	choose_family();
	open_device();
	make_buffer(0);
	make_buffer(1);
	make_layout();
	make_set();
	for (uint32_t i = 0; i < ROOM; i++)
		data[0][i] = i * 2654435761u >> 12;
	for (size_t k = 0; k < sizeof(shaders) / sizeof(*shaders); k++)
		run_shader(argv[1], k);
	vkDestroyDevice(device, NULL);
	vkDestroyInstance(instance, NULL);
	tell(true, "and it ends");
	return 0;
}

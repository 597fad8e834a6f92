/*
 * kfd/runtime/clock.c - device time to host time.
 *
 * Two readings of both clocks make a straight line; the first stays as long as
 * the clocks keep their pace, so the line gets better with age.
 */
#include <math.h>

#include "kfd/runtime/runtime.h"

#define STALE_NS  1000000000ull /* read again after this */
#define BASE_NS	  20000000ull	/* shorter lines have no slope of their own */
/* A crystal is within 100 ppm; more is a jump, not a pace. */
#define SLACK_PPM 1000
#define SLACK_NS  200000ull /* of a reading: the process may be interrupted */

static double nominal_hz(const struct kfd_dev *dev)
{
	return (double)dev->info.tick_hz;
}

/* Does reading c continue from b at the nominal pace? */
static bool is_continuation(const struct kfd_dev *dev,
			    const struct kfd_clock *b,
			    const struct kfd_clock *c)
{
	if (c->gpu_ticks < b->gpu_ticks || c->mono_raw_ns < b->mono_raw_ns)
		return false;
	double host = (double)(c->mono_raw_ns - b->mono_raw_ns);
	double gpu = (double)(c->gpu_ticks - b->gpu_ticks) * 1e9 /
		     nominal_hz(dev);
	return fabs(host - gpu) <= host * SLACK_PPM * 1e-6 + SLACK_NS;
}

static double slope_ns(const struct kfd_dev *dev)
{
	const struct kfd_clock *a = &dev->clock[0], *b = &dev->clock[1];

	if (b->mono_raw_ns - a->mono_raw_ns < BASE_NS ||
	    b->gpu_ticks <= a->gpu_ticks)
		return 1e9 / nominal_hz(dev);
	return (double)(b->mono_raw_ns - a->mono_raw_ns) /
	       (double)(b->gpu_ticks - a->gpu_ticks);
}

bool kfd_clock_calibrate(struct kfd_dev *dev, struct err *e)
{
	struct kfd_clock c;

	if (!kfd_clock_read(dev, &c, e))
		return false;
	pthread_mutex_lock(&dev->lock);
	if (!dev->clock_read_ns || !is_continuation(dev, &dev->clock[1], &c)) {
		/* Stamps up to the last good reading are of another line. */
		const uint64_t last = dev->clock[1].gpu_ticks;
		dev->clock_floor = last < c.gpu_ticks ? last : 0;
		dev->clock[0] = c;
	}
	dev->clock[1] = c;
	dev->clock_read_ns = time_mono_ns();
	pthread_mutex_unlock(&dev->lock);
	return true;
}

static bool is_stale(struct kfd_dev *dev)
{
	pthread_mutex_lock(&dev->lock);
	const uint64_t read = dev->clock_read_ns;
	pthread_mutex_unlock(&dev->lock);
	return !read || time_mono_ns() - read > STALE_NS;
}

bool kfd_clock_ns(struct kfd_dev *dev, uint64_t ticks, uint64_t *mono_raw_ns,
		  struct err *e)
{
	if (is_stale(dev) && !kfd_clock_calibrate(dev, e))
		return false;
	pthread_mutex_lock(&dev->lock);
	const struct kfd_clock a = dev->clock[0], b = dev->clock[1];
	const double ns = slope_ns(dev);
	const bool before = ticks <= dev->clock_floor;
	pthread_mutex_unlock(&dev->lock);
	/* After the last reading plus its age: of a clock that was set back. */
	const uint64_t newest =
		b.gpu_ticks + (uint64_t)(2 * STALE_NS / 1e9 * nominal_hz(dev));
	if (before || ticks > newest)
		return err_set(e, ERR_DEVICE,
			       "timestamp %llu is from before the device's "
			       "clock was set (suspend or reset)",
			       (unsigned long long)ticks);
	/* From the nearer reading: the sum loses no digits. */
	const struct kfd_clock *from =
		ticks > a.gpu_ticks + (b.gpu_ticks - a.gpu_ticks) / 2 ? &b : &a;
	const double d = (double)(int64_t)(ticks - from->gpu_ticks) * ns;
	*mono_raw_ns = from->mono_raw_ns + (uint64_t)(int64_t)llrint(d);
	return true;
}

double kfd_clock_hz(struct kfd_dev *dev)
{
	pthread_mutex_lock(&dev->lock);
	const double hz = 1e9 / slope_ns(dev);
	pthread_mutex_unlock(&dev->lock);
	return hz;
}

/*
 * kfd/soft/device/sensors.c - sensors: a model of load, clocks, power and
 * temperatures.
 *
 * A model, not a measurement.  Load is the share of time in which a kernel or
 * a copy was running, smoothed over 0.1 s.  From it follow the shader clock
 * (linear between the lowest and the highest), the memory clock (lowest when
 * idle, else highest) and board power (linear between idle and the limit).
 * Temperatures approach a level that is linear in power, with the time
 * constant of a cooler.  Nothing in the device depends on these figures.
 */
#include <math.h>

#include "kfd/soft/device/dev.h"

#define LOAD_TAU_S 0.1
#define HEAT_TAU_S 15.0
#define STEP_MIN_NS 1000000u

/* Of a 7900 XTX; others in proportion to their limits. */
#define IDLE_W	      18.0
#define LIMIT_W	      355.0
#define AMBIENT_C     25.0
#define C_PER_W	      0.1 /* edge above ambient: 60.5 C at the limit */
#define FAN_START_C   50.0
#define FAN_RPM_PER_C 80.0

static double model_power_w(double load)
{
	return IDLE_W + (LIMIT_W - IDLE_W) * load;
}

static double level_c(double load)
{
	return AMBIENT_C + C_PER_W * model_power_w(load);
}

void soft_load_init(struct soft_card *c)
{
	struct soft_load *l = &c->load;

	pthread_mutex_init(&l->lock, NULL);
	l->step_ns = time_mono_ns();
	l->temp_c = level_c(0);
}

void soft_load_fini(struct soft_card *c)
{
	pthread_mutex_destroy(&c->load.lock);
}

/* With the lock held: let the model catch up with the time. */
static void step_model(struct soft_load *l)
{
	const uint64_t now = time_mono_ns(), dt = now - l->step_ns;
	uint64_t busy = l->busy_ns;
	double s, share;

	if (dt < STEP_MIN_NS)
		return;
	if (l->running)
		busy += now - l->since_ns;
	s = (double)dt * 1e-9;
	/* Steps end with the work, too: long ones are all busy or all idle. */
	share = (double)(busy - l->step_busy_ns) / (double)dt;
	l->load += (share - l->load) * (1 - exp(-s / LOAD_TAU_S));
	l->temp_c += (level_c(share) - l->temp_c) * (1 - exp(-s / HEAT_TAU_S));
	l->step_ns = now;
	l->step_busy_ns = busy;
}

void soft_load_begin(struct soft_card *c)
{
	struct soft_load *l = &c->load;

	pthread_mutex_lock(&l->lock);
	step_model(l);
	if (!l->running++)
		l->since_ns = time_mono_ns();
	pthread_mutex_unlock(&l->lock);
}

void soft_load_end(struct soft_card *c)
{
	struct soft_load *l = &c->load;

	pthread_mutex_lock(&l->lock);
	step_model(l);
	if (!--l->running)
		l->busy_ns += time_mono_ns() - l->since_ns;
	pthread_mutex_unlock(&l->lock);
}

static unsigned interpolate_sensor(double lo, double hi, double part)
{
	return (unsigned)lround(lo + (hi - lo) * part);
}

void soft_sensors_read(struct soft_card *c, struct soft_sensors *out)
{
	struct soft_load *l = &c->load;
	const struct isa_chip *chip = c->chip;
	const double share = (double)chip->power_cap_uw * 1e-6 / LIMIT_W;
	double load, temp, power;

	pthread_mutex_lock(&l->lock);
	step_model(l);
	load = fmin(fmax(l->load, 0), 1);
	temp = l->temp_c;
	pthread_mutex_unlock(&l->lock);
	power = model_power_w(load);
	*out = (struct soft_sensors){
		.load_pct = interpolate_sensor(0, 100, load),
		.sclk_mhz = interpolate_sensor(chip->sclk_mhz[0],
					       chip->sclk_mhz[1], load),
		.mclk_mhz = chip->mclk_mhz[load < 0.01 ? 0 : 3],
		.vddgfx_mv = interpolate_sensor(700, 1050, load),
		.power_uw = (uint64_t)(power * share * 1e6),
		.edge_mc = interpolate_sensor(0, 1000, temp),
		/* The hot spot and the memory run hotter than the edge. */
		.junction_mc = interpolate_sensor(0, 1000, temp + 0.05 * power),
		.memory_mc = interpolate_sensor(0, 1000, temp + 6),
	};
	if (temp > FAN_START_C)
		out->fan_rpm = interpolate_sensor(0, FAN_RPM_PER_C, temp - 40);
}

/** Realistic web and sensor events. The same seed gives the same bytes. */
import { seededRandom } from '#lib/random.ts'

const pages = ['/', '/pricing', '/docs/start', '/docs/api', '/blog/parquet', '/signup', '/cart', '/checkout']
const referrers = [null, null, 'https://news.example', 'https://search.example/?q=ingest', 'https://social.example/p/1']
const plans = ['free', 'free', 'free', 'team', 'enterprise']
const browsers = ['Firefox 140', 'Chrome 142', 'Safari 19', 'Edge 142', 'HealthCheck/1.0']
const sites = ['berlin-1', 'berlin-2', 'lyon', 'porto', 'gdansk']
const startMs = Date.UTC(2026, 10, 20, 8)

/** Yields NDJSON lines without line breaks. About one in 2 000 is truncated, so that it is not valid JSON. */
export function* generateEvents(count: number, seed: number): Iterable<string> {
  const random = seededRandom(seed).fraction
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  for (let index = 0; index < count; index++) {
    const at = new Date(startMs + index * 37 + Math.floor(random() * 30)).toISOString()
    const id = `evt_${(index * 2_654_435_761).toString(36).padStart(9, '0')}`
    const line = JSON.stringify(random() < 0.7 ? webEvent(id, at, random, pick) : sensorReading(id, at, random, pick))
    yield random() < 0.0005 ? line.slice(0, Math.floor(line.length / 2)) : line
  }
}

type Pick = <T>(list: readonly T[]) => T

function webEvent(id: string, at: string, random: () => number, pick: Pick): unknown {
  const kind = random()
  const type = kind < 0.75 ? 'page_view' : kind < 0.93 ? 'click' : kind < 0.97 ? 'signup' : 'purchase'
  const user = Math.floor(random() ** 2 * 5_000)
  return {
    id,
    type,
    at,
    session: { id: `s-${user}-${Math.floor(random() * 4)}`, user: { id: user, plan: pick(plans) } },
    page: { path: pick(pages), referrer: pick(referrers) },
    browser: pick(browsers),
    ...(type === 'purchase' ? { order: { total: (random() * 200 + 5).toFixed(2), items: Math.ceil(random() * 5) } } : {}),
  }
}

function sensorReading(id: string, at: string, random: () => number, pick: Pick): unknown {
  const celsius = Math.round((random() * 25 + 5) * 100) / 100
  return {
    id,
    type: 'reading',
    at,
    device: { id: `sensor-${Math.floor(random() * 40)}`, site: pick(sites), firmware: '2.4.1' },
    // A sensor that has just started sends a word instead of a value.
    value: random() < 0.01 ? 'warming up' : celsius,
    battery: Math.round(random() * 100) / 100,
  }
}

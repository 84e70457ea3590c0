/**
 * A delivery process that dies at a named moment: `node delivery-child.ts MOMENT`, configured by the environment as usual. Of the moment
 * `operation` it dies before or after so many calls of a bucket: `node delivery-child.ts operation 12 after`.
 */
import { startDelivery } from '#delivery/app.ts'
import { type ConversionPool, createConversionPool } from '#delivery/convert/conversion-pool.ts'
import { systemClock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { DirectoryStores } from '#objects/directory.ts'
import type { ObjectStore, ObjectStores } from '#objects/object-store.ts'
import { readConfig } from '../../src/config/config.ts'
import { deadlyFiles } from '../support/deadly-files.ts'

type Hooks = { readonly files?: typeof systemFiles; readonly stores?: ObjectStores; readonly conversionPool?: ConversionPool }

const config = readConfig()
const real = new DirectoryStores({ ...system, root: config.paths.buckets })

const moments: Readonly<Record<string, Hooks>> = {
  'while it converts': {
    conversionPool: deadlyPool(),
  },
  'sealed, before upload': { stores: deadlyStores({ before: () => true }) },
  'some artifacts uploaded': { stores: deadlyStores({ after: (key) => key.includes('/parquet/') }) },
  'before the marker': { stores: deadlyStores({ before: (key) => key.includes('/commits/') }) },
  'marker, before the commit is kept': { stores: deadlyStores({ after: (key) => key.includes('/commits/') }) },
  'commit kept, before it is sent': {
    files: deadlyFiles(systemFiles, {
      operation: 'syncDirectory',
      when: 'after',
      matches: (path) => path === config.paths.outbox,
    }),
  },
  'commit recorded, before delete': {
    files: deadlyFiles(systemFiles, { operation: 'remove', when: 'before', matches: (path) => path.endsWith('.wal') }),
  },
  'segment deleted, before the outbox forgets': {
    files: deadlyFiles(systemFiles, { operation: 'remove', when: 'after', matches: (path) => path.endsWith('.wal') }),
  },
  'job: downloaded': { stores: deadlyStores({ got: () => true }) },
  'job: before the first artifact': { stores: deadlyStores({ before: (key) => key.includes('/v2/') }) },
  'job: some artifacts uploaded': { stores: deadlyStores({ after: (key) => /\/views\/numbers_\d\/v2\//.test(key) }) },
  'job: before the marker': { stores: deadlyStores({ before: (key) => /\.numbers_\d-v2\.json$/.test(key) }) },
  'compaction: downloaded': { stores: deadlyStores({ got: () => true }) },
  'compaction: before the file': { stores: deadlyStores({ before: (key) => key.includes('/compact-') }) },
  'compaction: before the marker': { stores: deadlyStores({ before: (key) => /\/commits\/.*\/compact-/.test(key) }) },
  'compaction: marker, before the report': { stores: deadlyStores({ after: (key) => /\/commits\/.*\/compact-/.test(key) }) },
  'job: marker, before the report': { stores: deadlyStores({ after: (key) => /\.numbers_\d-v2\.json$/.test(key) }) },
}

const [, , moment = '', count = '', when = ''] = process.argv
const hooks = moment === 'operation' ? { stores: deadlyAfter(Number(count), when === 'before') } : moments[moment]
if (hooks === undefined) throw new Error(`no such moment: ${moment}`)
await startDelivery(config, { logger: createLogger('delivery', 'error'), clock: systemClock, ...hooks })
setInterval(() => undefined, 60_000)

/** Conversion processes whose parent dies as soon as one works. */
function deadlyPool(): ConversionPool {
  const pool = createConversionPool({ clock: systemClock })
  const run = pool.run.bind(pool)
  pool.run = (task, options) => {
    const onReport = () => {
      void die()
      return 0
    }
    return run(task, { ...options, onReport })
  }
  return pool
}

type Deadly = (key: string) => boolean

/** Buckets that end the process at a put or a download. */
function deadlyStores({ before, after, got }: { before?: Deadly; after?: Deadly; got?: Deadly }): ObjectStores {
  const deadly = async <T>(key: string, put: () => Promise<T>): Promise<T> => {
    if (before?.(key) === true) await die()
    const result = await put()
    if (after?.(key) === true) await die()
    return result
  }
  return {
    open(target) {
      const store = real.open(target)
      const wrapped: ObjectStore = {
        put: (key, body, options) => deadly(key, () => store.put(key, body, options)),
        putIfAbsent: (key, body, options) => deadly(key, () => store.putIfAbsent(key, body, options)),
        putFile: (key, path, options) => deadly(key, () => store.putFile(key, path, options)),
        get: (key, signal) => store.get(key, signal),
        head: (key, signal) => store.head(key, signal),
        async getFile(key, path, signal) {
          const found = await store.getFile(key, path, signal)
          if (got?.(key) === true) await die()
          return found
        },
        digest: (key, options) => store.digest(key, options),
        presign: (key, seconds) => store.presign(key, seconds),
        remove: (key, signal) => store.remove(key, signal),
        list: (prefix, signal) => store.list(prefix, signal),
      }
      return wrapped
    },
  }
}

/** Buckets that end the process before or after one of their calls. */
function deadlyAfter(calls: number, isBefore: boolean): ObjectStores {
  let left = calls
  const deadly = async <T>(call: () => Promise<T>): Promise<T> => {
    left -= 1
    if (left === 0 && isBefore) await die()
    const isLast = left === 0
    const result = await call()
    if (isLast) await die()
    return result
  }
  return {
    open(target) {
      const store = real.open(target)
      return {
        put: (...args) => deadly(() => store.put(...args)),
        putIfAbsent: (...args) => deadly(() => store.putIfAbsent(...args)),
        putFile: (...args) => deadly(() => store.putFile(...args)),
        get: (...args) => deadly(() => store.get(...args)),
        head: (...args) => deadly(() => store.head(...args)),
        getFile: (...args) => deadly(() => store.getFile(...args)),
        digest: (...args) => store.digest(...args),
        presign: (...args) => store.presign(...args),
        remove: (...args) => deadly(() => store.remove(...args)),
        list: (...args) => store.list(...args),
      }
    },
  }
}

function die(): Promise<never> {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => undefined)
}

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { copyBucket } from '../../test/support/copy-bucket.ts'
import { FaultyStores } from '../../test/support/faulty-stores.ts'
import { ignoreConditions, lookBeforePut } from '../../test/support/lying-stores.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { storeWithoutRoles } from '../../test/support/s3/target.ts'
import { until } from '../../test/support/until.ts'
import { checkCopyStore, type StoreFinding } from './store-check.ts'

const { signal } = new AbortController()
const folder = 'in/let/'

let directory = ''
let store: ObjectStore
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-store-check-'))
  store = new FaultyStores(directory).open(copyBucket)
})
afterEach(() => rm(directory, { recursive: true }))

/** As the doctor does it, in one process. */
function thoroughly(of: ObjectStore, stopping = signal) {
  const thorough = { other: of, rounds: 3, stopping, onStep: () => undefined }
  return { ...system, store: of, folder, signal, racers: Array<ObjectStore>(8).fill(of), thorough }
}

/** Returns the steps that have a problem, with it. */
function problemsOf(findings: readonly StoreFinding[]): readonly string[] {
  return findings.flatMap(({ step, kind, problem }) => (problem === null ? [] : `${kind}: ${step}: ${problem}`))
}

async function problems(of = store): Promise<readonly string[]> {
  return problemsOf(await checkCopyStore(thoroughly(of)))
}

async function left(of = store): Promise<readonly string[]> {
  return (await Array.fromAsync(of.list(''))).map(({ key }) => key)
}

test('nothing is wrong with a directory, nothing is left in it, and what others have there stays', async () => {
  await store.put('in/let/check-0', Buffer.from('theirs'), { contentType: 'x/y', metadata: {} })
  const findings = await checkCopyStore(thoroughly(store))
  expect(problemsOf(findings)).toEqual([])
  expect(findings.map(({ rounds }) => rounds)).toEqual(findings.map(() => 3))
  expect(await left()).toEqual(['in/let/check-0'])
})

test('a node tries each step once', async () => {
  const findings = await checkCopyStore({ ...system, store, folder, signal })
  expect(findings.map(({ kind, problem, rounds }) => [kind, problem, rounds])).toEqual([
    ...Array(6).fill(['needed', null, 1]),
    ['fence', null, 1],
  ])
  expect(await left()).toEqual([])
})

/** Answers with what it answered first. */
function remembering<T>(read: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const first = new Map<string, T>()
  return async (key) => {
    if (!first.has(key)) first.set(key, await read(key))
    return first.get(key) as T
  }
}

/** Each changes the store so that it breaks one promise. */
const lies: readonly { readonly lie: string; readonly tell: (store: ObjectStore) => void; readonly found: readonly string[] }[] =
  [
    {
      lie: 'ignores conditions',
      tell: ignoreConditions,
      found: [
        'fence: a put with If-None-Match is refused if the name is taken: it replaced the object',
        'fence: of several such puts at once one is taken: 8 of 8 were taken for a new name',
      ],
    },
    {
      lie: 'looks before it puts under a condition, and not while it puts',
      tell: lookBeforePut,
      found: [expect.stringMatching(/^fence: of several such puts at once one is taken: \d of 8 were taken for a new name$/)],
    },
    {
      lie: 'remembers names that were removed',
      tell(at) {
        const { putIfAbsent } = at
        const used = new Set<string>()
        at.putIfAbsent = async (key, ...rest) => {
          if (used.has(key) && (await at.head(key)) === undefined) return false
          const isNew = await putIfAbsent.call(at, key, ...rest)
          if (isNew) used.add(key)
          return isNew
        }
      },
      found: ['fence: of several such puts at once one is taken: none of 8 was taken for a removed name'],
    },
    {
      lie: 'refuses conditions',
      tell(at) {
        at.putIfAbsent = async () => {
          throw new ObjectStoreError('condition_refused', 'put_if_absent', 'NotImplemented', 'it knows no conditions')
        }
      },
      found: [
        'needed: a put with If-None-Match is taken if the name is free: it knows no conditions',
        'fence: a put with If-None-Match is refused if the name is taken: it knows no conditions',
        'fence: of several such puts at once one is taken: it knows no conditions',
      ],
    },
    {
      lie: 'refuses every put under a condition',
      tell(at) {
        at.putIfAbsent = async () => false
      },
      found: [
        'needed: a put with If-None-Match is taken if the name is free: it was refused, and the name is still free',
        'fence: of several such puts at once one is taken: none of 8 was taken for a new name',
      ],
    },
    {
      lie: 'gives old content',
      tell(at) {
        const { get } = at
        const first = new Map<string, Uint8Array>()
        at.get = async (key) => {
          const found = first.get(key) ?? (await get.call(at, key))
          if (found !== undefined) first.set(key, found)
          return found
        }
      },
      found: [
        'needed: a put that replaces is read: another content is read right after the put',
        'needed: what is removed is gone: it is read right after the removal',
        'fence: of several such puts at once one is taken: one was refused, and then did not read the object',
      ],
    },
    {
      lie: 'remembers that a name was missing',
      tell(at) {
        const { head } = at
        at.head = remembering((key) => head.call(at, key))
      },
      found: ['needed: a name that was missing is read once it is put: it is still missing right after the put'],
    },
    {
      lie: 'has old lists',
      tell(at) {
        const { list } = at
        const keys = new Map<string, { readonly key: string; readonly bytes: number }[]>()
        at.list = async function* (prefix) {
          const before = keys.get(prefix) ?? []
          keys.set(prefix, await Array.fromAsync(list.call(at, prefix)))
          yield* before
        }
      },
      found: ['needed: a put is listed: it is not in the list right after the put'],
    },
    {
      lie: 'acknowledges what it does not store',
      tell(at) {
        at.put = async () => undefined
      },
      found: [
        'needed: a put is read: it is missing right after the put',
        'needed: a name that was missing is read once it is put: it is still missing right after the put',
        'needed: a put that replaces is read: it is missing right after the put',
        'needed: a put is listed: it is not in the list right after the put',
        'fence: a put with If-None-Match is refused if the name is taken: it replaced the object',
      ],
    },
    {
      lie: 'does not remove',
      tell(at) {
        at.remove = async () => undefined
      },
      found: [
        'needed: what is removed is gone: it is there right after the removal',
        'fence: of several such puts at once one is taken: none of 8 is read for a removed name',
      ],
    },
  ]

test.each(lies)('a store that $lie is found', async ({ tell, found }) => {
  tell(store)
  expect(await problems()).toEqual(found)
})

test('old answers that only another process gets are found', async () => {
  const other = new FaultyStores(directory).open(copyBucket)
  const { head } = other
  other.head = remembering((key) => head.call(other, key))
  const { thorough, ...options } = thoroughly(store)
  expect(problemsOf(await checkCopyStore({ ...options, thorough: { ...thorough, other } }))).toEqual([
    'needed: a name that was missing is read once it is put: it is still missing right after the put',
  ])
})

test('a store that refuses a put whose answer was lost is found, and is no danger', async () => {
  const { putIfAbsent } = store
  store.putIfAbsent = async (...args) => {
    await putIfAbsent.apply(store, args)
    return false
  }
  const findings = await checkCopyStore(thoroughly(store))
  expect(problemsOf(findings)).toEqual([])
  expect(findings.flatMap(({ step, note }) => (note === null ? [] : `${step}: ${note}`))).toEqual([
    expect.stringContaining('is taken if the name is free: it refused a put that it had stored'),
    expect.stringContaining('at once one is taken: it refused a put that it had stored'),
  ])
})

test('a store that asks some of several writers to try again is honest', async () => {
  const { putIfAbsent } = store
  let puts = 0
  store.putIfAbsent = async (...args) => {
    puts += 1
    if (puts % 3 === 0) throw new ObjectStoreError('unavailable', 'put_if_absent', 'ConditionalRequestConflict', 'again')
    return putIfAbsent.apply(store, args)
  }
  expect((await problems()).filter((problem) => problem.includes('several'))).toEqual([])
})

test('a request that fails leaves its step unknown, and one that the store never does is a refusal', async () => {
  store.putIfAbsent = async () => {
    throw new ObjectStoreError('unavailable', 'put_if_absent', 'SlowDown', 'try again')
  }
  const findings = await checkCopyStore(thoroughly(store))
  const ofPuts = findings.flatMap(({ step, problem, isUnknown }) =>
    step.includes('put') && problem ? [[problem, isUnknown]] : [],
  )
  expect(ofPuts).toEqual(Array(3).fill(['try again', true]))
  store.putIfAbsent = async () => {
    throw new ObjectStoreError('condition_refused', 'put_if_absent', 'NotImplemented', 'it knows no conditions')
  }
  expect((await checkCopyStore(thoroughly(store))).some(({ isUnknown }) => isUnknown)).toBe(false)
})

test('removals that fail are tried again', async () => {
  const { remove } = store
  const failed = new Set<string>()
  store.remove = async (key, ...rest) => {
    if (failed.size < 20 && !failed.has(key)) {
      failed.add(key)
      throw new ObjectStoreError('unavailable', 'remove', 'SlowDown', 'try again')
    }
    await remove.call(store, key, ...rest)
  }
  await checkCopyStore(thoroughly(store))
  expect([failed.size, await left()]).toEqual([20, []])
})

test('a store that takes nothing says why', async () => {
  store.put = async () => {
    throw new Error('the bucket does not exist')
  }
  await expect(problems()).rejects.toThrow('the bucket does not exist')
})

test('a store that removes nothing is found, with the names of what is left', async () => {
  store.remove = async () => {
    throw new Error('denied')
  }
  expect((await problems()).at(-1)).toMatch(/^left: .*: up to \d+ objects in\/let\/check-[0-9a-f]{16}-… may be left$/)
})

describe('in bounded time', () => {
  test('a request without an answer is a finding, and the other steps are tried', async () => {
    const clock = new ManualClock()
    let asked = 0
    store.list = async function* () {
      asked += 1
      await new Promise(() => undefined)
    }
    const checked = checkCopyStore({ ...system, clock, store, folder, signal })
    await until('the list', () => asked === 1)
    clock.advance(30_000)
    expect(problemsOf(await checked)).toEqual(['needed: a put is listed: the store did not answer within 30 s'])
    expect((await Array.fromAsync(new FaultyStores(directory).open(copyBucket).list(''))).length).toBe(0)
  })

  test('a store that answers nothing ends the check', async () => {
    const clock = new ManualClock()
    let asked = 0
    store.put = async () => {
      asked += 1
      await new Promise(() => undefined)
    }
    const checked = expect(checkCopyStore({ ...system, clock, store, folder, signal })).rejects.toThrow('within 30 s')
    await until('the put', () => asked === 1)
    clock.advance(30_000)
    await checked
  })
})

test('a check that is stopped removes what it has put, once the requests in flight have ended', async () => {
  const stopping = new AbortController()
  const { put } = store
  const puts = Promise.withResolvers<void>()
  let begun = 0
  store.put = async (key, body, options) => {
    begun += 1
    if (begun === 2) await puts.promise
    await put.call(store, key, body, options)
  }
  const checked = expect(checkCopyStore(thoroughly(store, stopping.signal))).rejects.toThrow('stop')
  await until('a put', () => begun === 2)
  stopping.abort(new Error('stop'))
  puts.resolve()
  await checked
  expect([begun, await left()]).toEqual([2, []])
})

test('a check that is stopped says what it could not remove', async () => {
  const stopping = new AbortController()
  store.remove = async () => {
    throw new Error('denied')
  }
  const options = thoroughly(store, stopping.signal)
  const { put } = store
  store.put = async (...args) => {
    await put.apply(store, args)
    stopping.abort(new Error('stop'))
  }
  await expect(checkCopyStore(options)).rejects.toThrow(/^stop: up to 1 object in\/let\/check-\w+-… may be left$/)
})

describe('over HTTP', () => {
  /** Returns problems and notes of the steps that only S3 has. */
  async function furnished() {
    const at = await storeWithoutRoles()
    const found = async () => {
      const findings = await checkCopyStore(thoroughly(at.store))
      expect(problemsOf(findings).filter((problem) => /^(needed|fence)/.test(problem))).toEqual([])
      const seen = findings.filter(({ kind }) => kind === 'parts' || kind === 'advice')
      return seen.map(({ problem, isUnknown, note }) => (isUnknown ? `unknown: ${problem}` : (problem ?? note)))
    }
    return { ...at, found }
  }
  const compares = 'it refuses a wrong SHA-256 of the signature, SHA-256, CRC32, CRC32C'

  test('nothing is wrong with an honest store, and nothing is left in it', async () => {
    const { double, bucket, found, ...at } = await furnished()
    await using _ = at
    expect(await found()).toEqual([null, null, compares, null])
    expect(bucket).toMatchObject({ objects: new Map(), uploads: new Map() })
  })

  test('a store that keeps a part of a put is found', async () => {
    const { double, store: at, ...rest } = await storeWithoutRoles()
    await using _ = rest
    double.keepsTorn = true
    expect(problemsOf(await checkCopyStore(thoroughly(at)))).toEqual([
      expect.stringMatching(
        /^needed: a put that breaks off leaves nothing: (a part of it is read|the name is taken|another content is read after another put)$/,
      ),
    ])
  })

  test('an abandoned upload that stays is found', async () => {
    const { double, bucket, found, ...at } = await furnished()
    await using _ = at
    double.keepsAbandoned = true
    expect((await found())[0]).toBe('it is still listed among the uploads')
  })

  test('a key that may not list uploads leaves unknown whether they stay', async () => {
    const { double, role, found, ...at } = await furnished()
    await using _ = at
    role.denied.add('ListMultipartUploads')
    expect((await found())[0]).toBe('unknown: the key may not list uploads (s3:ListBucketMultipartUploads), so nobody looked')
  })

  test('a key that may not abandon uploads leaves unknown whether they stay', async () => {
    const { double, role, found, ...at } = await furnished()
    await using _ = at
    role.denied.add('AbortMultipartUpload')
    expect((await found())[0]).toMatch(/^unknown: .*s3:AbortMultipartUpload/)
  })

  test('a bucket that keeps versions is found', async () => {
    const { double, found, ...at } = await furnished()
    await using _ = at
    double.keepsVersions = true
    expect((await found())[1]).toMatch(/^the bucket keeps versions/)
  })

  test('a store that does not compare checksums is found', async () => {
    const { double, found, ...at } = await furnished()
    await using _ = at
    double.ignoresChecksums = ['sha256', 'crc32c']
    expect((await found())[2]).toBe(
      'it refuses a wrong SHA-256 of the signature, CRC32, and stores one with a wrong SHA-256, CRC32C; Inlet finds damage by the checksums in its own objects',
    )
    double.ignoresChecksums = ['signature', 'sha256', 'crc32', 'crc32c']
    expect((await found())[2]).toContain('it stores content that differs from its checksum')
  })

  test.each([
    [600_000, 'it is 600 s ahead of this machine'],
    [-120_000, 'it is 120 s behind this machine'],
  ])('a clock that is %i ms ahead is found', async (aheadMs, problem) => {
    const { double, found, ...at } = await furnished()
    await using _ = at
    double.aheadMs = aheadMs
    expect((await found())[3]).toBe(problem)
  })
})

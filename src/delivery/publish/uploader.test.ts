import { describe, expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { newId } from '#model/id.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { until } from '../../../test/support/until.ts'
import type { BuiltFile } from '../convert/build/built-file.ts'
import { DestinationBackoff } from './destination-backoff.ts'
import { metadataOf } from './put-artifact.ts'
import { Uploader } from './uploader.ts'

const never = new AbortController().signal
const segment = {
  endpointId: newId(),
  nodeId: newId(),
  incarnation: 'l',
  seq: 7,
  sealedAtMicros: Date.UTC(2026, 10, 20) * 1000,
}
const prefix = 'p'
const files = (['parquet', 'segment'] as const).map(
  (type): BuiltFile => ({ kind: { type }, path: `/${type}`, bytes: 1, rows: 1, sha256: 'a'.repeat(64) }),
)

/** A bucket whose puts call `does`. */
class Bucket {
  does: (signal: AbortSignal | undefined) => Promise<void> = async () => undefined
  inFlight = 0
  readonly store = {
    putFile: async (_key: string, _path: string, { signal }: { readonly signal?: AbortSignal }) => {
      this.inFlight += 1
      await this.does(signal).finally(() => {
        this.inFlight -= 1
      })
    },
  } as unknown as ObjectStore
}

const ignore = () => undefined
const uploaderOf = (parallel: number, parallelBackingOff: number, parallelPerDestination = parallel) =>
  new Uploader({ parallel, parallelPerDestination, parallelBackingOff, backoff: new DestinationBackoff(system) })

const fails = () => Promise.reject(new Error('no bucket'))
const hangs = (signal: AbortSignal | undefined) =>
  new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))

describe('Uploader', () => {
  test('a bucket that hangs does not delay others', async () => {
    const uploader = uploaderOf(2, 1)
    const [dead, healthy] = [new Bucket(), new Bucket()]
    const upload = (destinationId: string, { store }: Bucket, signal = never) =>
      uploader.upload({ ...{ destinationId, store, prefix, segment, files, signal }, report: ignore })
    dead.does = fails
    await expect(upload('dead', dead)).rejects.toThrow('no bucket')
    dead.does = hangs
    const stop = new AbortController()
    const hanging = [1, 2, 3].map(() => upload('dead', dead, stop.signal))
    for (let n = 0; n < 10; n += 1) expect(Object.keys(await upload('healthy', healthy))).toEqual(['parquet', 'segment'])
    await until('one to try', () => dead.inFlight > 0)
    expect(dead.inFlight).toBe(1)
    stop.abort(new Error('stopped'))
    for (const result of await Promise.allSettled(hanging)) expect(result).toMatchObject({ reason: { message: 'stopped' } })

    // An abort is not a failure, and one success ends the outage.
    dead.does = async () => undefined
    await upload('dead', dead)
    dead.does = hangs
    const again = new AbortController()
    const both = upload('dead', dead, again.signal)
    await until('both files to be in flight', () => dead.inFlight === 2)
    again.abort()
    await expect(both).rejects.toThrow()
  })

  test('a bucket that hangs leaves slots for others before it times out', async () => {
    const uploader = uploaderOf(3, 1, 2)
    const [silent, healthy] = [new Bucket(), new Bucket()]
    silent.does = hangs
    const stop = new AbortController()
    const upload = (destinationId: string, { store }: Bucket) =>
      uploader.upload({ ...{ destinationId, store, prefix, segment, files }, signal: stop.signal, report: ignore })
    const hanging = [1, 2, 3].map(() => upload('silent', silent))
    await until('two to be in flight', () => silent.inFlight === 2)
    expect(Object.keys(await upload('healthy', healthy))).toEqual(['parquet', 'segment'])
    expect(silent.inFlight).toBe(2)
    stop.abort(new Error('stopped'))
    for (const result of await Promise.allSettled(hanging)) expect(result).toMatchObject({ reason: { message: 'stopped' } })
  })

  test('files that waited for a slot when another failed release it too', async () => {
    const uploader = uploaderOf(1, 1)
    const [dead, healthy] = [new Bucket(), new Bucket()]
    const failure = Promise.withResolvers<never>()
    dead.does = () => failure.promise
    const stop = new AbortController()
    const first = uploader.upload({
      ...{ destinationId: 'dead', store: dead.store, prefix, segment, files },
      signal: stop.signal,
      report: ignore,
    })
    const second = uploader.upload({
      ...{ destinationId: 'dead', store: dead.store, prefix, segment, files },
      signal: stop.signal,
      report: ignore,
    })
    const healthyUpload = uploader.upload({
      ...{ destinationId: 'healthy', store: healthy.store, prefix, segment, files },
      signal: never,
      report: ignore,
    })
    await until('the first to be in flight', () => dead.inFlight === 1)
    dead.does = hangs
    failure.reject(new Error('no bucket'))
    await expect(first).rejects.toThrow('no bucket')
    expect(Object.keys(await healthyUpload)).toEqual(['parquet', 'segment'])
    stop.abort(new Error('stopped'))
    await expect(second).rejects.toThrow('stopped')
  })
})

test('the metadata of an object describes it', () => {
  const view = { id: newId(), version: 3 }
  expect(metadataOf(segment, { type: 'view', name: 'orders', version: 3 }, { sha256: 'abc', rows: 12, view })).toEqual({
    ...{ kind: 'views/orders/v3', sha256: 'abc', rows: '12', 'endpoint-id': segment.endpointId, 'node-id': segment.nodeId },
    ...{ log: 'l', seq: '7', 'sealed-at': '2026-11-20T00:00:00.000Z', 'view-id': view.id, 'view-version': '3' },
  })
})

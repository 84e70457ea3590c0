/** The promises of the log. Every engine passes this suite. */
import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import type { Frame, FrameInput } from '../../src/log/frame.ts'
import type { Appended, LogHooks, LogSettings, LogWriter } from '../../src/log/log-writer.ts'
import { pieceBytes, type SegmentPiece } from '../../src/log/segment-piece.ts'
import type { Segment, SegmentRef, SegmentSource } from '../../src/log/segment-source.ts'
import { oneRecord } from './frames.ts'
import type { ManualClock } from './manual-clock.ts'
import { until } from './until.ts'

/** An engine with storage of its own, of which a test takes what it wants. */
export type EngineUnderTest = {
  readonly clock: ManualClock
  /** Returns a writer, and with it a new process, that is not started. */
  open(hooks?: LogHooks & { readonly waitingBytesMax?: number }): LogWriter
  /** Returns a source of the process that was opened last. */
  source(): SegmentSource
  /** Cuts the power: what was opened fails from now on. */
  crash(): void
  /** Leaves the storage room for so many bytes more. */
  leaveRoom(bytes: number): void
  /** Damages a frame of a sealed segment. */
  damage(segment: SegmentRef, index: number): Promise<void>
}

const never = new AbortController().signal
const settings: LogSettings = { segmentBytes: 10_000, segmentMaxAgeMs: 60_000, seqAbove: -1 }

class Rig {
  readonly engine: EngineUnderTest
  wal: LogWriter

  constructor(engine: EngineUnderTest) {
    this.engine = engine
    this.wal = engine.open()
  }

  /** Starts the writer of a new process, with a log. */
  async start(hooks?: Parameters<EngineUnderTest['open']>[0]): Promise<void> {
    this.wal = this.engine.open(hooks)
    await this.wal.start()
    this.wal.configure('log', settings)
  }

  append(name: string, bytes = 100): Promise<Appended> {
    return this.wal.append('log', this.frame(name, bytes))
  }

  frame(name: string, bytes = 100): FrameInput {
    return oneRecord({ payload: Buffer.alloc(bytes, name), envelope: name, at: this.engine.clock.now() * 1_000 })
  }

  /** Lets `ms` pass, and everything happen that is due. */
  async pass(ms: number): Promise<void> {
    this.engine.clock.advance(ms)
    for (let turn = 0; turn < 60; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  }

  async segments(logName = 'log'): Promise<readonly Segment[]> {
    const source = this.engine.source()
    return (await source.logNames()).includes(logName) ? (await source.readLog(logName)).segments : []
  }

  async states(): Promise<readonly string[]> {
    return (await this.segments()).map(({ seq, state }) => `${seq} ${state}`)
  }

  /** Reads and removes what is sealed. Returns the seq of each frame by its name. */
  async deliver(): Promise<Record<string, number>> {
    const found: Record<string, number> = {}
    for (const segment of await this.segments()) {
      if (segment.state !== 'sealed') continue
      for (const { envelope } of await this.read(segment)) found[Buffer.from(envelope).toString()] = segment.seq
      await this.engine.source().remove(segment)
    }
    return found
  }

  async read(segment: SegmentRef): Promise<readonly Frame[]> {
    const opened = await this.engine.source().open(segment)
    const found: Frame[] = []
    try {
      for await (const frames of opened.frames(1_000))
        for (const frame of frames)
          found.push({ ...frame, envelope: Buffer.from(frame.envelope), payload: Buffer.from(frame.payload) })
    } finally {
      await opened.close()
    }
    return found
  }

  /** Appends the frames as one sealed segment, and returns it. */
  async seal(...names: readonly string[]): Promise<Segment> {
    await Promise.all(names.map((name) => this.append(name)))
    await this.pass(60_000)
    const segment = (await this.segments()).findLast(({ state }) => state === 'sealed')
    if (segment === undefined) throw new Error('nothing was sealed')
    return segment
  }
}

export function describeLogEngine(engineName: string, create: () => EngineUnderTest): void {
  const started = async () => {
    const rig = new Rig(create())
    await rig.start()
    return rig
  }
  describe(`the ${engineName} engine of the log`, () => {
    describe('append', () => {
      test('acknowledges in order, and every frame ends up in a sealed segment as it was sent', async () => {
        const rig = await started()
        const order: string[] = []
        const names = Array.from({ length: 50 }, (_, id) => `frame ${id}`)
        await Promise.all(names.map((name) => rig.append(name).then(() => order.push(name))))
        expect(order).toEqual(names)
        await rig.wal.stop(never)
        const [segment, ...others] = await rig.segments()
        const frames = segment === undefined || others.length > 0 ? [] : await rig.read(segment)
        const sent = names.map((name) => rig.frame(name))
        expect(frames.map(({ at: _, ...frame }) => ({ ...frame, payload: [frame.payload] }))).toEqual(sent)
      })

      test('makes the frames of one turn durable together', async () => {
        const rig = await started()
        const appended = await Promise.all(Array.from({ length: 50 }, (_, id) => rig.append(String(id), 10)))
        expect(new Set(appended.map(({ sync }) => sync)).size).toBe(1)
        expect(rig.wal.usage.syncs.count).toBeGreaterThan(0)
      })

      test('bounds the bytes that wait', async () => {
        const rig = await started()
        await rig.start({ waitingBytesMax: 5_000 })
        const answers = await Promise.allSettled(Array.from({ length: 4 }, (_, id) => rig.append(String(id), 2_000)))
        expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected'])
        expect(answers[2]).toMatchObject({ reason: { reason: 'overloaded' } })
        expect(rig.wal.usage.waitingBytes).toBe(0)
      })

      test('to a log that was never configured is a broken invariant', async () => {
        const rig = await started()
        expect(() => rig.wal.append('other', rig.frame('a'))).toThrow(/never configured/)
      })
    })

    describe('configure', () => {
      test('sets the age at which a segment is sealed, even if it has one record', async () => {
        const rig = await started()
        await rig.append('lone')
        await rig.pass(59_999)
        expect(await rig.states()).toEqual(['0 open'])
        await rig.pass(1)
        expect(await rig.states()).toEqual(['0 sealed'])
        expect(await rig.deliver()).toEqual({ lone: 0 })
      })

      test('age counts from the first frame, and an idle log creates no segment', async () => {
        const rig = await started()
        await rig.pass(600_000)
        expect(await rig.states()).toEqual([])
        await rig.append('late')
        await rig.pass(59_999)
        expect(await rig.states()).toEqual(['0 open'])
      })

      test('sets the size above which no segment grows', async () => {
        const rig = await started()
        for (let id = 0; id < 6; id += 1) await rig.append(String(id), 3_000)
        await rig.wal.stop(never)
        for (const { bytes } of await rig.segments()) expect(bytes).toBeLessThanOrEqual(10_000)
        expect(await rig.deliver()).toEqual({ 0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 1 })
      })

      test('gives a frame that is larger than a segment a segment of its own, sealed at once', async () => {
        const rig = await started()
        await rig.append('small')
        await rig.append('large', 50_000)
        await rig.pass(0)
        expect(await rig.states()).toEqual(['0 sealed', '1 sealed'])
        expect(await rig.deliver()).toEqual({ small: 0, large: 1 })
      })

      test('applies another age to the open segment, at once if it is older', async () => {
        const rig = await started()
        await rig.append('a')
        rig.wal.configure('log', { ...settings, segmentMaxAgeMs: 90_000 })
        await rig.pass(60_000)
        rig.wal.configure('log', { ...settings, segmentMaxAgeMs: 70_000 })
        await rig.pass(9_999)
        expect(await rig.states()).toEqual(['0 open'])
        await rig.pass(1)
        expect(await rig.states()).toEqual(['0 sealed'])
        rig.wal.configure('log', { ...settings, seqAbove: 40 })
        expect(await rig.append('b')).toMatchObject({ seq: 41 })
        await rig.pass(3_000)
        rig.wal.configure('log', { ...settings, segmentMaxAgeMs: 1_000 })
        await rig.pass(0)
        expect(await rig.states()).toEqual(['0 sealed', '41 sealed'])
      })

      test('applies a smaller size to the open segment, at once if it is larger', async () => {
        const rig = await started()
        await rig.append('a', 3_000)
        rig.wal.configure('log', { ...settings, segmentBytes: 5_000 })
        await rig.pass(0)
        expect(await rig.states()).toEqual(['0 open'])
        rig.wal.configure('log', { ...settings, segmentBytes: 2_000 })
        await rig.pass(0)
        expect(await rig.states()).toEqual(['0 sealed'])
      })
    })

    describe('stop', () => {
      test('stores what was accepted and seals, and later appends are rejected', async () => {
        const rig = await started()
        await rig.append('a')
        const waiting = rig.append('b')
        await rig.wal.stop(never)
        await rig.wal.stop(never)
        expect(await waiting).toMatchObject({ seq: 0 })
        await expect(rig.append('c')).rejects.toMatchObject({ reason: 'stopping' })
        expect(await rig.states()).toEqual(['0 sealed'])
      })

      test('and a start go on with the next seq, even if everything was removed', async () => {
        const rig = await started()
        await rig.append('a')
        await rig.wal.stop(never)
        await rig.deliver()
        await rig.start()
        expect(await rig.append('b')).toMatchObject({ seq: 1 })
        expect(await rig.engine.source().highestSeq('log')).toEqual({ seq: 1 })
      })
    })

    describe('usage', () => {
      test('follows appends, seals and removals by delivery', async () => {
        const rig = await started()
        const stored = async () => (await rig.segments()).reduce((sum, { bytes }) => sum + bytes, 0)
        let told = 0
        await rig.start({ onUsage: (_, bytes) => (told += bytes) })
        await rig.append('a', 1_000)
        expect([rig.wal.usage.bytes, rig.wal.usage.openBytes, told]).toEqual([await stored(), await stored(), told])
        await rig.pass(1_000)
        expect(rig.wal.usage.oldestOpenMs).toBe(1_000)
        await rig.pass(59_000)
        await rig.append('b', 500)
        expect([rig.wal.usage.bytes, told]).toEqual([await stored(), await stored()])
        await rig.deliver()
        await rig.pass(1_000)
        expect([rig.wal.usage.bytes, told]).toEqual([await stored(), await stored()])
        rig.engine.crash()
        await rig.start()
        expect(rig.wal.usage.bytes).toBe(await stored())
      })
    })

    describe('a full storage', () => {
      test('rejects every append, keeps what is sealed, and recovers by itself even without appends', async () => {
        const rig = await started()
        const sealed = await rig.seal('kept')
        rig.engine.leaveRoom(0)
        await expect(rig.append('a')).rejects.toMatchObject({ reason: 'disk_full' })
        await expect(rig.append('b')).rejects.toMatchObject({ reason: 'disk_full' })
        expect(rig.wal.health()).toMatchObject({ healthy: false, reasons: [expect.stringContaining('disk_full')] })
        expect((await rig.read(sealed)).length).toBe(1)
        rig.engine.leaveRoom(1_000_000)
        await rig.pass(1_000)
        expect(rig.wal.health()).toEqual({ healthy: true, reasons: [] })
        await rig.append('c')
        await rig.wal.stop(never)
        expect(Object.keys(await rig.deliver())).toEqual(['kept', 'c'])
      })
    })

    describe('a crash', () => {
      test('loses no acknowledged frame: what was open is sealed at the next start, in a segment of its own', async () => {
        const rig = await started()
        await rig.append('a')
        await rig.append('b')
        rig.engine.crash()
        await expect(rig.append('never')).rejects.toMatchObject({ reason: 'io_error' })
        const sealed: string[] = []
        await rig.start({ onSealed: ({ logName, seq }) => sealed.push(`${logName} ${seq}`) })
        await rig.wal.whenRecovered('log')
        expect([await rig.states(), sealed]).toEqual([['0 sealed'], ['log 0']])
        expect(await rig.append('c')).toMatchObject({ seq: 1 })
        await rig.wal.stop(never)
        expect(await rig.deliver()).toEqual({ a: 0, b: 0, c: 1 })
      })

      test('tells the observer what is intact before it is sealed', async () => {
        const rig = await started()
        await rig.append('a')
        rig.engine.crash()
        const events: string[] = []
        await rig.start({
          observer: {
            observes: ({ envelope }) => Buffer.from(envelope).toString() === 'b',
            appended: (seq, frames) => events.push(`appended ${frames.length} to ${seq}`),
            recovering: (_, seq) => ({
              recovered: ({ envelope }) => events.push(`recovered ${Buffer.from(envelope)} in ${seq}`),
              lost: () => Promise.resolve(),
            }),
            async beforeSeal() {
              events.push(`before seal of ${(await rig.segments()).filter(({ state }) => state === 'open').length}`)
            },
          },
        })
        await rig.append('b').then(() => events.push('acknowledged'))
        await rig.append('c')
        expect(events.slice(0, 4)).toEqual(['recovered a in 0', 'before seal of 1', 'appended 1 to 1', 'acknowledged'])
      })
    })

    describe('end', () => {
      test('as closed stores what was accepted and seals, readers see it, also after a crash, and a configuration opens the log again', async () => {
        const rig = await started()
        const waiting = rig.append('a')
        await rig.wal.end('log', 'closed')
        await rig.wal.end('log', 'closed')
        expect(await waiting).toMatchObject({ seq: 0 })
        await expect(rig.append('b')).rejects.toMatchObject({ reason: 'stopping' })
        await until('the mark', async () => (await rig.engine.source().readLog('log')).isClosed)
        expect(await rig.states()).toEqual(['0 sealed'])
        rig.engine.crash()
        rig.wal = rig.engine.open()
        await rig.wal.start()
        expect((await rig.engine.source().readLog('log')).isClosed).toBe(true)
        rig.wal.configure('log', settings)
        expect(await rig.append('c')).toMatchObject({ seq: 1 })
        expect((await rig.engine.source().readLog('log')).isClosed).toBe(false)
      })

      test('as closed also marks a log that never had data', async () => {
        const rig = await started()
        await rig.wal.end('other', 'closed')
        await until('the mark', async () => (await rig.engine.source().readLog('other')).isClosed)
        expect(await rig.segments('other')).toEqual([])
        await expect(rig.wal.append('other', rig.frame('a'))).rejects.toMatchObject({ reason: 'stopping' })
        rig.engine.crash()
        await rig.start()
        await rig.wal.end('other', 'closed')
        await until('the mark', async () => (await rig.engine.source().readLog('other')).isClosed)
      })

      test('as unowned removes the log with its last segment, and only that one', async () => {
        const rig = await started()
        rig.wal.configure('owned', settings)
        await Promise.all([rig.append('a'), rig.wal.append('owned', rig.frame('b'))])
        rig.wal.endUnowned(new Set(['owned']))
        await rig.pass(1_000)
        expect(await rig.states()).toEqual(['0 sealed'])
        await rig.deliver()
        await rig.pass(1_000)
        expect(await rig.engine.source().logNames()).toEqual(['owned'])
        await expect(rig.append('c')).rejects.toMatchObject({ reason: 'stopping' })
        rig.wal.configure('log', settings)
        expect(await rig.append('d')).toMatchObject({ seq: 1 })
      })

      test('as adopted takes no frames, and leaves what there is for delivery', async () => {
        const rig = await started()
        await rig.append('a')
        rig.engine.crash()
        rig.wal = rig.engine.open()
        await rig.wal.start()
        await rig.wal.end('log', 'adopted')
        await expect(rig.append('b')).rejects.toMatchObject({ reason: 'stopping' })
        await rig.pass(1_000)
        expect([await rig.deliver(), rig.wal.blocked()]).toEqual([{ a: 0 }, []])
      })

      test('as fenced acknowledges nothing any more, whatever the configuration says', async () => {
        const rig = await started()
        await rig.append('a')
        const acknowledged: string[] = []
        const waiting = rig.append('b').then(() => acknowledged.push('b'))
        const ended = rig.wal.end('log', 'fenced')
        await expect(waiting).rejects.toMatchObject({ reason: 'stopping' })
        await ended
        rig.wal.configure('log', settings)
        await rig.wal.end('log', 'closed')
        await expect(rig.append('c')).rejects.toMatchObject({ reason: 'stopping' })
        await rig.pass(1_000)
        expect(rig.wal.blocked()).toEqual([{ logName: 'log', reason: expect.stringContaining('another writer') }])
        expect([acknowledged, (await rig.deliver())['a']]).toEqual([[], 0])
        expect((await rig.engine.source().readLog('log')).isClosed).toBe(false)
      })
    })

    test('an acknowledgement waits as long as the process wishes, and is a rejection if the log is fenced meanwhile', async () => {
      const rig = new Rig(create())
      const waits: PromiseWithResolvers<void>[] = []
      await rig.start({ mayAcknowledge: () => waits.at(-1)?.promise })
      await rig.append('a')
      const acknowledged: string[] = []
      for (const name of ['b', 'c']) {
        const wait = Promise.withResolvers<void>()
        waits.push(wait)
        const appended = rig.append(name).then(() => acknowledged.push(name))
        appended.catch(() => undefined)
        await rig.pass(1_000)
        expect(acknowledged).not.toContain(name)
        if (name === 'c') void rig.wal.end('log', 'fenced')
        wait.resolve()
        if (name === 'c') await expect(appended).rejects.toMatchObject({ reason: 'unacknowledged' })
        else await appended
      }
      expect(acknowledged).toEqual(['b'])
    })

    test('hands over what became durable in a log that is copied, segment by segment from the first byte', async () => {
      const rig = new Rig(create())
      const pieces: { readonly piece: SegmentPiece; readonly stored: PromiseWithResolvers<void> }[] = []
      const copy = (piece: SegmentPiece) => {
        const stored = Promise.withResolvers<void>()
        pieces.push({ piece, stored })
        return stored.promise
      }
      await rig.start({ copy })
      expect((await rig.append('not copied')).copied).toBeUndefined()
      rig.wal.configure('log', { ...settings, isCopied: true })
      const [a, b] = [await rig.append('a'), await rig.append('b')]
      rig.wal.configure('log', settings)
      const last = await rig.append('not copied any more')
      expect([a.seq, b.seq, last.seq, last.copied]).toEqual([1, 1, 2, undefined])
      expect(pieces.map(({ piece }) => piece.seq)).toEqual([1, 1])
      const [first, second] = pieces
      expect([first?.piece.at, second?.piece.at]).toEqual([0, first && pieceBytes(first.piece)])
      first?.stored.resolve()
      await expect(a.copied).resolves.toBeUndefined()
      second?.stored.reject(new Error('the store is down'))
      await expect(b.copied).rejects.toThrow('the store is down')
      await rig.wal.stop(never)
      expect(await rig.deliver()).toEqual({ 'not copied': 0, a: 1, b: 1, 'not copied any more': 2 })
    })

    describe('the source', () => {
      test('lists logs and segments in order, and opens what is sealed', async () => {
        const rig = await started()
        const hinted: (string | null)[] = []
        const unwatch = await rig.engine.source().watch((logName) => hinted.push(logName))
        const segment = await rig.seal('a', 'b')
        await rig.append('c')
        unwatch()
        expect(await rig.engine.source().logNames()).toEqual(['log'])
        expect(await rig.states()).toEqual(['0 sealed', '1 open'])
        const opened = await rig.engine.source().open(segment)
        expect(opened).toMatchObject({ header: { logName: 'log', seq: 0 }, bytes: segment.bytes })
        const sealedAtMicros = rig.engine.clock.now() * 1_000
        const [first] = (await Array.fromAsync(opened.frames(1_000))).flat()
        expect(first).toBeDefined()
        expect(opened.footer).toMatchObject({
          ...{ records: 2, damagedRecords: 0, sealedAtMicros },
          firstReceivedAtMicros: first?.receivedAtMicros,
        })
        await opened.close()
        const [, open] = await rig.segments()
        await rig.pass(5_000)
        const counted = await rig.engine.source().openRecords()
        expect(counted?.segments).toEqual([expect.objectContaining({ logName: 'log', seq: 1, records: 1 })])
        expect(counted?.atMs).toBeGreaterThan(rig.engine.clock.now() - 5_000)
        expect(counted?.segments[0]).toMatchObject({ bytes: open?.bytes, asOfMs: counted?.atMs })
        if (open !== undefined)
          await expect(rig.engine.source().open({ ...open, seq: 7 })).rejects.toMatchObject({ code: 'ENOENT' })
      })

      test('removes a segment, also twice', async () => {
        const rig = await started()
        const segment = await rig.seal('a')
        expect(await rig.engine.source().has(segment)).toBe(true)
        await rig.engine.source().remove(segment)
        await rig.engine.source().remove(segment)
        expect([await rig.engine.source().has(segment), await rig.states()]).toEqual([false, []])
      })

      test('keeps a quarantined segment with the reason, also if it is told twice', async () => {
        const rig = await started()
        const segment = await rig.seal('a')
        const place = await rig.engine.source().quarantine(segment, 'skipped')
        expect(await rig.engine.source().quarantine(segment, 'another')).toBe(place)
        expect(await rig.states()).toEqual(['0 quarantined'])
        expect(await rig.engine.source().quarantineNote(segment)).toMatchObject({ reason: 'skipped', records_lost: 0 })
      })

      test('throws at damage after the frames before it, and salvages what is intact', async () => {
        const rig = await started()
        const segment = await rig.seal('a', 'b', 'c')
        const source = rig.engine.source()
        expect(await source.salvage(segment)).toEqual({ outcome: 'intact' })
        await rig.engine.damage(segment, 1)
        await expect(rig.read(segment)).rejects.toMatchObject({ name: 'SegmentError', problem: 'damaged' })
        expect(await source.salvage(segment)).toMatchObject({ outcome: 'salvaged', recordsLost: 1 })
        expect(await source.salvage(segment)).toEqual({ outcome: 'intact' })
        expect([...(await rig.states())].sort()).toEqual(['0 quarantined', '0 sealed'])
        expect(await source.quarantineNote(segment)).toMatchObject({ records_lost: 1 })
        const opened = await source.open(segment)
        expect(opened.footer).toMatchObject({ records: 2, damagedRecords: 1 })
        await opened.close()
        expect(await rig.deliver()).toEqual({ a: 0, c: 0 })
      })

      test('quarantines a segment of which nothing is intact', async () => {
        const rig = await started()
        const segment = await rig.seal('a')
        await rig.engine.damage(segment, 0)
        expect(await rig.engine.source().salvage(segment)).toMatchObject({ outcome: 'quarantined', recordsLost: 1 })
        expect(await rig.engine.source().salvage(segment)).toMatchObject({ outcome: 'quarantined', recordsLost: 1 })
        expect(await rig.states()).toEqual(['0 quarantined'])
      })
    })
  })
}

/**
 * A client that knows everything about the log but its key: names, seq, incarnation, the format, where its bytes will be in the file, and the
 * salts of all other segments. Its payloads are frames, footers and headers. Then the disk damages the file in any way.
 *
 * Law: only frames that were appended are delivered.
 */
import { Buffer } from 'node:buffer'
import { crc32c } from '@node-rs/crc32'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Files } from '#lib/files.ts'
import { seededRandom } from '#lib/random.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { encodeFrame, type Salt } from '#log/local/format/frame.ts'
import { decodeHeader, encodeFooter, encodeHeader, HEADER_BYTES } from '#log/local/format/segment-file.ts'
import { SegmentTally } from '#log/local/format/segment-tally.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import type { FrameInput } from '../../src/log/frame.ts'
import type { SegmentRef } from '../../src/log/segment-source.ts'
import { FaultyDisk } from '../support/faulty-files.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { runs } from '../support/thorough.ts'

const directory = '/data/wal'
const ENVELOPE_BYTES = 4

/** The salt that a forger uses: that of another segment of the log, one made of the names, or none. */
type Guess = 'other segment' | 'names' | 'zero'
type Piece = { readonly kind: 'frame' | 'footer' | 'header' | 'noise'; readonly guess: Guess }
/** `at`: a place in the file, mostly one where a forged piece starts or ends. */
type Damage = {
  readonly kind: 'cut' | 'zero' | 'flip' | 'remove' | 'move to start'
  readonly at: number
  readonly exact: boolean
  readonly bytes: number
}

const guess = fc.constantFrom<Guess[]>('other segment', 'names', 'zero')
const piece: fc.Arbitrary<Piece> = fc.record({
  kind: fc.constantFrom<Piece['kind'][]>('frame', 'frame', 'footer', 'header', 'noise'),
  guess,
})
const whole: fc.Arbitrary<readonly Piece[]> = guess.map((own) =>
  (['header', 'frame', 'frame', 'footer'] as const).map((kind) => ({ kind, guess: own })),
)
const payloads = fc.array(fc.oneof(whole, fc.array(piece, { maxLength: 8 })), { minLength: 1, maxLength: 5 })
const damage: fc.Arbitrary<Damage> = fc.record({
  kind: fc.constantFrom<Damage['kind'][]>('cut', 'zero', 'flip', 'remove', 'move to start'),
  at: fc.nat({ max: 10_000 }),
  exact: fc.boolean(),
  bytes: fc.oneof(fc.constantFrom(1, HEADER_BYTES, 512), fc.nat({ max: 2_000 })),
})

test('nothing is delivered that was not appended', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(
      payloads,
      fc.array(damage, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      fc.nat(),
      async (sent, hurt, isSealed, seed) => {
        const world = new World(seed)
        await world.leakOneSalt()
        for (const pieces of sent) await world.send(pieces)
        expect((await world.damageAndDeliver(hurt, isSealed)).filter((name) => name === forged)).toEqual([])
      },
    ),
    { numRuns: runs(400, 4_000) },
  )
})

test.each([true, false])('a client that knew the salt would succeed (sealed: %s)', async (isSealed) => {
  const world = new World(1)
  await world.leakOneSalt()
  await world.send([{ kind: 'noise', guess: 'zero' }])
  world.stealSalt()
  const at = world.framesBytes + 9
  await world.send((['frame', 'footer'] as const).map((kind) => ({ kind, guess: 'other segment' })))
  const delivered = await world.damageAndDeliver([{ kind: 'flip', at, exact: false, bytes: 1 }], isSealed)
  expect(delivered).toContain(forged)
})

const forged = 'evil'

class World {
  readonly #disk: FaultyDisk
  readonly #clock = new ManualClock()
  readonly #sent = new Map<string, Buffer>()
  /** Where forged pieces start and end. */
  readonly #places: number[] = []
  #files: Files
  #wal: LocalLogWriter
  #leaked: Salt = { length: 0, crc: 0 }
  framesBytes = HEADER_BYTES

  constructor(seed: number) {
    this.#disk = new FaultyDisk(seededRandom(seed))
    this.#files = this.#disk.mount()
    this.#wal = this.#newWal()
  }

  /** Seals and delivers a first segment. Readers of the bucket know its bytes then. */
  async leakOneSalt(): Promise<void> {
    await this.#start()
    await this.#append(Buffer.from('first'))
    this.#clock.advance(60_000)
    for (let turn = 0; turn < 60; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    const segments = new LocalSegmentSource({ directory, files: this.#files, clock: this.#clock })
    const [first] = await segments.list()
    if (first?.state !== 'sealed') throw new Error('the first segment was not sealed')
    this.#leaked = await this.#saltIn(first.path)
    await segments.remove(first)
    await this.#append(Buffer.from('benign'))
    this.framesBytes = (await this.#files.bytes(await this.#path())) ?? 0
  }

  async send(pieces: readonly Piece[]): Promise<void> {
    const parts: Buffer[] = []
    const identity = await this.#identity()
    const payloadAt = this.framesBytes + 32 + ENVELOPE_BYTES
    let at = payloadAt
    let framesFrom = at
    let tally: SegmentTally | undefined
    for (const { kind, guess: by } of pieces) {
      const salt = this.#salt(by, identity)
      tally ??= new SegmentTally(salt)
      const frame = frameOf(forged, Buffer.from(`forged ${at}`))
      const bytes = {
        frame: () => encodeFrame(frame, salt, true),
        footer: () => encodeFooter((tally ?? new SegmentTally(salt)).footer(at - framesFrom + HEADER_BYTES, 1), salt),
        header: () => encodeHeader({ ...identity, createdAtMicros: 1, salt }),
        noise: () => Buffer.alloc(50, 'n'),
      }[kind]()
      if (kind === 'frame') tally.add(frame, 10, bytes.readUInt32LE(8))
      if (kind === 'header') {
        tally = new SegmentTally(salt)
        framesFrom = at + bytes.byteLength
      }
      this.#places.push(at, at + bytes.byteLength)
      parts.push(bytes)
      at += bytes.byteLength
    }
    await this.#append(Buffer.concat(parts))
    this.framesBytes = (await this.#files.bytes(await this.#path())) ?? 0
  }

  stealSalt(): void {
    const path = this.#disk.paths().find((name) => name.endsWith('.open')) ?? ''
    this.#disk.damage(path, (bytes) => {
      this.#leaked = headerSalt(bytes)
    })
  }

  /** Returns the names of the frames that are delivered afterwards. Each of them must be one that was sent, unless it is the forged one. */
  async damageAndDeliver(hurt: readonly Damage[], isSealed: boolean): Promise<readonly string[]> {
    if (isSealed) await this.#wal.stop(new AbortController().signal)
    else this.#disk.kill()
    this.#files = this.#disk.mount()
    const path = await this.#path()
    for (const one of hurt) await this.#damage(path, one)
    this.#wal = this.#newWal()
    await this.#wal.start()
    await this.#wal.stop(new AbortController().signal)
    const segments = new LocalSegmentSource({ directory, files: this.#files, clock: this.#clock })
    const names: string[] = []
    for (const segment of await segments.list()) {
      if (segment.state !== 'sealed') continue
      const isIntact = await this.#read(segments, segment).then(
        () => true,
        () => false,
      )
      if (!isIntact && (await segments.salvage(segment)).outcome === 'quarantined') continue
      for (const [name, payload] of await this.#read(segments, segment)) {
        names.push(name)
        if (name !== forged) expect(this.#sent.get(name)?.equals(payload), `${name} is as it was sent`).toBe(true)
      }
    }
    expect(new Set(names.filter((name) => name !== forged)).size).toBe(names.filter((name) => name !== forged).length)
    return names
  }

  async #damage(path: string, { kind, at: wanted, exact, bytes: size }: Damage): Promise<void> {
    const before = Buffer.from((await this.#files.read(path)) ?? [])
    const places = this.#places.length > 0 && exact ? this.#places : undefined
    const at = places === undefined ? wanted % (before.byteLength + 1) : (places[wanted % places.length] ?? 0)
    const after = {
      cut: () => before.subarray(0, at),
      zero: () => Buffer.from(before).fill(0, at, Math.min(at + size, before.byteLength)),
      flip: () => Buffer.from(before.map((byte, index) => (index === at ? byte ^ 1 : byte))),
      remove: () => Buffer.concat([before.subarray(0, Math.max(at - size, 0)), before.subarray(at)]),
      'move to start': () => before.subarray(at),
    }[kind]()
    await this.#files.remove(path)
    const file = await this.#files.open(path, 'create')
    await file.write([after], 0)
    await file.close()
  }

  async #read(segments: LocalSegmentSource, segment: SegmentRef): Promise<readonly (readonly [string, Buffer])[]> {
    const reader = await segments.open(segment)
    try {
      const found: (readonly [string, Buffer])[] = []
      for await (const frames of reader.frames(2_000)) {
        for (const { envelope, payload } of frames) found.push([Buffer.from(envelope).toString(), Buffer.from(payload)])
      }
      return found
    } finally {
      await reader.close()
    }
  }

  async #append(payload: Buffer): Promise<void> {
    const name = String(this.#sent.size).padStart(ENVELOPE_BYTES, '0')
    this.#sent.set(name, payload)
    await this.#wal.append('log', frameOf(name, payload))
  }

  #salt(by: Guess, { logName, seq, incarnation }: SegmentRef): Salt {
    if (by === 'other segment') return this.#leaked
    const names = crc32c(`${logName}/${seq}-${incarnation}`)
    return by === 'names' ? { length: names, crc: names } : { length: 0, crc: 0 }
  }

  async #saltIn(path: string): Promise<Salt> {
    return headerSalt(Buffer.from((await this.#files.read(path)) ?? []))
  }

  async #path(): Promise<string> {
    const list = await new LocalSegmentSource({ directory, files: this.#files, clock: this.#clock }).list()
    return list.at(-1)?.path ?? ''
  }

  async #identity(): Promise<SegmentRef> {
    const list = await new LocalSegmentSource({ directory, files: this.#files, clock: this.#clock }).list()
    const { logName = '', seq = 0, incarnation = '' } = list.at(-1) ?? {}
    return { logName, seq, incarnation }
  }

  async #start(): Promise<void> {
    await this.#wal.start()
    this.#wal.configure('log', { segmentBytes: 1_000_000, segmentMaxAgeMs: 60_000, seqAbove: -1 })
  }

  #newWal(): LocalLogWriter {
    return new LocalLogWriter({
      ...system,
      directory,
      files: this.#files,
      clock: this.#clock,
      logger: createLogger('test', 'silent'),
    })
  }
}

function headerSalt(bytes: Buffer): Salt {
  const header = decodeHeader(bytes.subarray(0, HEADER_BYTES))
  if (typeof header === 'string') throw new Error(header)
  return header.salt
}

function frameOf(name: string, payload: Buffer): FrameInput {
  return { layout: 'single', receivedAtMicros: 1, recordCount: 1, envelope: Buffer.from(name), payload: [payload] }
}

import { Buffer } from 'node:buffer'
import type { Files } from '#lib/files.ts'
import { seededRandom } from '#lib/random.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { MemoryLogWriter } from '#log/memory/log-writer.ts'
import { MemorySegmentSource } from '#log/memory/segment-source.ts'
import { MemoryStorage } from '#log/memory/storage.ts'
import { FaultyDisk } from '../support/faulty-files.ts'
import { frameAt } from '../support/frames.ts'
import { describeLogEngine, type EngineUnderTest } from '../support/log-suite.ts'
import { ManualClock } from '../support/manual-clock.ts'

describeLogEngine('local', (): EngineUnderTest => {
  const directory = '/data/wal'
  const disk = new FaultyDisk(seededRandom(7))
  const clock = new ManualClock()
  let files: Files = disk.mount()
  return {
    clock,
    open({ waitingBytesMax, ...hooks } = {}) {
      files = disk.mount()
      const limits = waitingBytesMax === undefined ? {} : { waitingBytesMax }
      return new LocalLogWriter({ ...system, directory, files, clock, logger: createLogger('test', 'silent'), limits, ...hooks })
    },
    source: () => new LocalSegmentSource({ directory, files, clock }),
    crash: () => disk.crash(),
    leaveRoom(bytes) {
      disk.capacityBytes = disk.usedBytes() + bytes
    },
    async damage(segment, index) {
      const [path = ''] = new LocalSegmentSource({ ...system, directory, files }).filesOf(segment)
      const bytes = Buffer.from((await files.read(path)) ?? [])
      const at = frameAt(bytes, index) + 20
      disk.damage(path, (stored) => stored.writeUInt8((bytes[at] ?? 0) ^ 1, at))
    },
  }
})

describeLogEngine('memory', (): EngineUnderTest => {
  const storage = new MemoryStorage()
  const clock = new ManualClock()
  const random = seededRandom(7)
  return {
    clock,
    open: (hooks = {}) => new MemoryLogWriter({ storage, clock, random, ...hooks }),
    source: () => new MemorySegmentSource(storage, clock),
    crash: () => storage.crash(),
    leaveRoom(bytes) {
      storage.capacityBytes = storage.bytes + bytes
    },
    damage: async (segment, index) => storage.damage(segment, index),
  }
})

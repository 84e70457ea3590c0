/**
 * A process that appends frames one after the other, prints each acknowledgement, and dies at a named moment:
 * `node wal-child.ts DIRECTORY MOMENT`.
 */
import { Buffer } from 'node:buffer'
import { writeSync } from 'node:fs'
import { type Files, systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { deadlyFiles, type Moment } from '../support/deadly-files.ts'
import { replaceOperations } from '../support/replace-operations.ts'

const isSegment = (path: string) => path.endsWith('.open')
const nth = (n: number) => {
  let seen = 0
  return (path: string) => isSegment(path) && seen++ === n
}

const moments: Readonly<Record<string, Moment>> = {
  'written, before fsync': { operation: 'sync', when: 'before', matches: nth(3) },
  'fsync, before the answer': { operation: 'sync', when: 'after', matches: nth(3) },
  // Five groups are synced before the footer.
  'footer, before rename': { operation: 'rename', when: 'before', matches: isSegment },
  'footer written, before its fsync': { operation: 'sync', when: 'before', matches: nth(5) },
  'rename, before the directory fsync': { operation: 'rename', when: 'after', matches: isSegment },
}

const [directory = '', name = ''] = process.argv.slice(2)
const moment = moments[name]
const tornWrite = name === 'inside a write'
const files = moment === undefined ? (tornWrite ? tearing(systemFiles) : systemFiles) : deadlyFiles(systemFiles, moment)
const wal = new LocalLogWriter({ ...system, directory, files, logger: createLogger('child', 'silent') })
await wal.start()
wal.configure('log', { segmentBytes: 1_000_000, segmentMaxAgeMs: 3_600_000, seqAbove: -1 })
for (let id = 0; id < 5; id += 1) {
  const { seq } = await wal.append('log', {
    layout: 'lines',
    receivedAtMicros: 1_795_000_000_000_000 + id,
    recordCount: 1,
    envelope: Buffer.alloc(0),
    payload: [Buffer.from(`{"id":${id},"filler":"${'x'.repeat(10_000)}"}\n`)],
  })
  writeSync(1, `${id} ${seq}\n`)
}
await wal.stop(new AbortController().signal)

/** Writes only the first half of the fourth group to the file. */
function tearing(real: Files): Files {
  return {
    ...real,
    async open(path, mode) {
      const file = await real.open(path, mode)
      let writes = 0
      return replaceOperations(file, {
        async write(chunks, position) {
          if (!isSegment(path) || writes++ !== 3) return await file.write(chunks, position)
          const bytes = Buffer.concat(chunks)
          await file.write([bytes.subarray(0, bytes.byteLength >> 1)], position)
          process.kill(process.pid, 'SIGKILL')
          return await new Promise(() => undefined)
        },
      })
    },
  }
}

/**
 * Finds damage in the write-ahead log of SQLite. SQLite ignores everything behind a damaged frame, without an error, because it takes it for a
 * write that a crash interrupted.
 *
 * Law: an interrupted write is never reported. Each transaction is on disk before the next one begins (`synchronous=FULL`), so a damaged frame
 * is damage only if a transaction behind it ended, and another one began. Format: https://www.sqlite.org/fileformat2.html#walformat
 */
import { MiB } from '#lib/bytes.ts'
import type { Files } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'

const headerBytes = 32
const frameHeaderBytes = 24
/** A log grows beyond that only if somebody reads the database for hours. It would be read into memory. */
const readBytesMax = 256 * MiB
const magic = 0x377f0682
/** Set in the magic number if checksums read their words with the most significant byte first. */
const bigEndianBit = 1

/** Returns whether the log of a database lost transactions that were on disk. Read it before SQLite opens the database. */
export async function hasDamagedLog(files: Files, database: string): Promise<boolean> {
  const path = `${database}-wal`
  if (((await files.bytes(path)) ?? 0) > readBytesMax) return false
  const bytes = await files.read(path)
  return bytes !== undefined && isDamaged(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
}

/**
 * Throws UserError if the log is damaged: whoever opens the database would empty the log, and control would not learn of it. A log that control
 * writes meanwhile is read twice, because the first reading may meet half a frame.
 */
export async function requireIntactLog(files: Files, database: string): Promise<void> {
  if (!(await hasDamagedLog(files, database)) || !(await hasDamagedLog(files, database))) return
  throw new UserError(
    `the log of the database, ${database}-wal, is damaged: start control first, which notes which commits may be missing, and run the command then`,
  )
}

function isDamaged(log: Buffer): boolean {
  // The header is on disk before the first frame.
  if (log.length <= headerBytes + frameHeaderBytes) return false
  const number = log.readUInt32BE(0)
  const isBigEndian = (number & bigEndianBit) !== 0
  const afterHeader = addWords([0, 0], log.subarray(0, 24), isBigEndian)
  if ((number & ~bigEndianBit) >>> 0 !== magic || !isSum(afterHeader, log, 24)) return true
  const frameBytes = frameHeaderBytes + log.readUInt32BE(8)
  const salts = log.subarray(16, 24)
  let sum = afterHeader
  let isWhole = true
  let hasEnded = false
  for (let start = headerBytes; start + frameBytes <= log.length; start += frameBytes) {
    const isOfThisLog = log.subarray(start + 8, start + 16).equals(salts)
    if (isWhole) {
      sum = addWords(sum, log.subarray(start, start + 8), isBigEndian)
      sum = addWords(sum, log.subarray(start + frameHeaderBytes, start + frameBytes), isBigEndian)
      isWhole = isOfThisLog && isSum(sum, log, start + 16)
      if (isWhole) continue
    }
    if (!isOfThisLog) continue
    if (hasEnded) return true
    // The last frame of a transaction has the size of the database after it.
    hasEnded = log.readUInt32BE(start + 4) !== 0
  }
  return false
}

type Sum = readonly [number, number]

function isSum([first, second]: Sum, log: Buffer, at: number): boolean {
  return log.readUInt32BE(at) === first && log.readUInt32BE(at + 4) === second
}

function addWords([first, second]: Sum, bytes: Buffer, isBigEndian: boolean): Sum {
  const word = (at: number) => (isBigEndian ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at))
  for (let at = 0; at < bytes.length; at += 8) {
    first = (first + word(at) + second) >>> 0
    second = (second + word(at + 4) + first) >>> 0
  }
  return [first, second]
}

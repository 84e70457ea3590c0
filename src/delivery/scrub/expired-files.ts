/**
 * Tells files that a rule of the bucket removed by their age from files that are missing.
 *
 * Law: a rule removes the oldest first. So a missing file has expired if something newer of its kind is left and nothing older, or if nothing of
 * its kind is left, and nothing at all of its age. If nothing newer is left either, it is reported: a bucket that was emptied looks like that.
 * No rule is shorter than a day.
 */
import { isoTimestamp } from '#lib/clock.ts'
import { dayMs } from '#lib/time-units.ts'
import { parseArtifactKind, printArtifactKind } from '#model/artifact.ts'
import { scrubLimits } from './limits.ts'

export type MissingFile = { readonly kind: string; readonly key: string; readonly bucket: string; readonly uploadedAt: string }

const shortestRuleMs = dayMs

export class ExpiredFiles {
  readonly #undecided = new Map<string, { readonly files: MissingFile[]; count: number }>()
  readonly #survived = new Set<string>()
  #oldestSurvivor: string | undefined
  #expired = 0
  readonly #youngest: string

  constructor(now: number) {
    this.#youngest = isoTimestamp(now - shortestRuleMs)
  }

  /** Call it in the order of the commits. Returns whether the file is missing for sure; otherwise `close` decides. */
  isMissing(file: MissingFile): boolean {
    const group = groupOf(file.kind)
    if (this.#survived.has(group) || file.uploadedAt > this.#youngest) return true
    const undecided = this.#undecided.get(group) ?? { files: [], count: 0 }
    this.#undecided.set(group, undecided)
    undecided.count += 1
    if (undecided.files.length < scrubLimits.findingsMax) undecided.files.push(file)
    return false
  }

  /** A file of this kind is in the bucket: everything older of its kind that is not was removed by its age. */
  found(kind: string, uploadedAt: string): void {
    this.#oldestSurvivor ??= uploadedAt
    const group = groupOf(kind)
    if (this.#survived.has(group)) return
    this.#survived.add(group)
    this.#expired += this.#undecided.get(group)?.count ?? 0
    this.#undecided.delete(group)
  }

  /** Call it after the last commit. Returns the files that are missing, and the number of those that have expired. */
  close(): { readonly missing: readonly MissingFile[]; readonly expired: number } {
    const oldest = this.#oldestSurvivor ?? ''
    const missing = [...this.#undecided.values()].flatMap(({ files }) => files.filter(({ uploadedAt }) => uploadedAt >= oldest))
    const undecided = [...this.#undecided.values()].reduce((sum, { count }) => sum + count, 0)
    return { missing, expired: this.#expired + undecided - missing.length }
  }
}

/** All versions of a view are removed alike. */
function groupOf(text: string): string {
  const kind = parseArtifactKind(text)
  if (kind === undefined) return text
  return kind.type === 'view' || kind.type === 'dlq'
    ? printArtifactKind({ type: kind.type, name: kind.name, version: 1 })
    : kind.type
}

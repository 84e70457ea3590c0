/** Safeguards of the data plane, and how to take each one out of the source: the simulation must find that it is missing. */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export type Safeguard = {
  readonly name: string
  /** Relative to src/. */
  readonly file: string
  readonly from: string
  readonly to: string
  /** How many are enough to find that it is missing, default 200. */
  readonly histories?: number
  /** Why no history finds it: nothing is lost without it, or another test has it. */
  readonly unfound?: string
}

export const safeguards: readonly Safeguard[] = [
  {
    name: 'a frame is synced before it is acknowledged',
    file: 'log/local/write/segment-writer.ts',
    from: 'await this.#file.sync()',
    to: '',
  },
  {
    name: 'an append waits for its write',
    file: 'log/local/write/segment-writer.ts',
    from: 'await this.#write(chunks)',
    to: 'void this.#write(chunks)',
  },
  {
    name: 'a segment whose sync failed is not written to again',
    file: 'log/local/write/segment-writer.ts',
    from: '      this.#lastSync = { startedAtMs, endedAtMs }\n    } catch (error) {\n      this.#fail()',
    to: '      this.#lastSync = { startedAtMs, endedAtMs }\n    } catch (error) {',
    unfound:
      'the next group takes the place of the failed one and has a sync of its own; kernels differ in what they keep after EIO, so wal-faults.test.ts still asks for it',
  },
  {
    name: 'a segment whose write failed is not written to again',
    file: 'log/local/write/segment-writer.ts',
    from: '      else this.#fail()',
    to: '',
    unfound:
      'the next group takes the place of the failed one, and what is left of that may be stored, as any request that failed',
  },
  {
    name: 'a full disk cuts a segment back',
    file: 'log/local/write/segment-writer.ts',
    from: 'if (isDiskFull(error)) await this.#cutBack()',
    to: 'if (isDiskFull(error)) {}',
    unfound: 'the next group takes the place of the failed one, and a repair cuts what is left of it behind the footer',
  },
  {
    name: 'a file that was created although it failed is removed',
    file: 'log/local/write/current-segment.ts',
    from: 'await files.remove(path).catch(() => {',
    to: 'await Promise.resolve().catch(() => {',
  },
  {
    name: 'the seq of a segment is durable before its first frame',
    file: 'log/local/write/current-segment.ts',
    from: 'await writeHighWater(files, directory, { seq, opened: { incarnation, round } })',
    to: '',
  },
  {
    name: 'small files are synced before they replace others',
    file: 'lib/files.ts',
    from: '      await write(file)\n      await file.sync()',
    to: '      await write(file)',
  },
  {
    name: 'the names of small files are synced',
    file: 'lib/files.ts',
    from: '  await files.syncDirectory(dirname(path))\n}\n\nconst temporaryName',
    to: '}\n\nconst temporaryName',
  },
  {
    name: 'a segment that may be committed is looked for',
    file: 'delivery/segment-delivery.ts',
    from: 'if (mayBeCommitted &&',
    to: 'if (false &&',
    histories: 400,
  },
  {
    name: 'control is asked for earlier commits',
    file: 'delivery/segment-delivery.ts',
    from: 'await this.#knownCommits.find(facts.id, run)\n    if (found === undefined) return false',
    to: 'await this.#knownCommits.find(facts.id, run)\n    if (true) return false',
  },
  {
    name: 'the outbox is durable before a segment is delivered',
    file: 'node/outbox.ts',
    from: 'await this.#files.write(entry, commit)',
    to: 'void this.#files.write(entry, commit).catch(() => undefined)',
    unfound: 'an entry that is gone is noticed, and its segment is delivered again from its marker',
  },
  {
    name: 'a marker is written after the files that it lists',
    file: 'delivery/segment-delivery.ts',
    from: "await measure('upload', this.#upload(facts, built, target, run))",
    to: "await Promise.race([measure('upload', this.#upload(facts, built, target, run)), Object.fromEntries(built.files.map((file) => [file.kind.type, { key: 'x', bytes: file.bytes, rows: file.rows, sha256: file.sha256 }]))])",
  },
  {
    name: 'a request waits for the one before with its key',
    file: 'ingest/idempotency/stored-requests.ts',
    from: '    await other\n',
    to: '',
  },
  {
    name: 'keys are found in the frames that a crash left',
    file: 'ingest/idempotency/stored-requests.ts',
    from: 'if (!this.#unwritten.has(id))\n',
    to: 'if (id === undefined)\n',
  },
  {
    name: 'keys of what is delivered are in the copy store before the records go',
    file: 'copies/copies.ts',
    from: 'keepKeys: (delivered) => this.#keys.keep(delivered),',
    to: 'keepKeys: (delivered) => Promise.resolve(delivered),',
  },
  {
    name: 'a key is remembered before its request is acknowledged',
    file: 'log/local/write/current-segment.ts',
    from: 'if (group.observed.length > 0) this.#options',
    to: 'if (group.observed.length < 0) this.#options',
  },
  {
    name: 'keys are on the disk before a recovered segment is sealed',
    file: 'log/local/recover/recover-segment.ts',
    from: 'await observer?.beforeSeal()\n',
    to: '',
  },
  {
    name: 'keys are synced',
    file: 'ingest/idempotency/stored-requests.ts',
    from: 'await this.#written.sync()\n',
    to: '',
  },
  {
    name: 'the name of a file of keys is durable',
    file: 'ingest/idempotency/request-file.ts',
    from: 'await files.syncDirectory(dirname(path))\n',
    to: '',
  },
  {
    name: 'other records with a known key are refused',
    file: 'ingest/idempotency/stored-requests.ts',
    from: 'if (known.body.equals(request.body)) return',
    to: 'if (known !== undefined) return',
  },
  {
    name: 'memory is free once a request is over',
    file: 'ingest/gate/admitted.ts',
    from: 'this.#room.release(this.#reservedBytes)\n',
    to: '',
  },
  {
    name: 'a segment waits for its turn',
    file: 'delivery/publish/committer.ts',
    from: 'await turn\n',
    to: '\n',
  },
  {
    name: 'a frame is compared with its checksum',
    file: 'log/local/format/frame.ts',
    from: "if (crc32c(bytes.subarray(offset + PREFIX_BYTES, end), salt.crc) !== crc) return 'corrupt'",
    to: '',
  },
  {
    name: 'a footer is compared with its checksum',
    file: 'log/local/format/segment-file.ts',
    from: 'if (bytes.readUInt32LE(offset + 92) !== crc32c(bytes.subarray(offset, offset + 92), salt.crc)) return undefined',
    to: '',
    histories: 500,
  },
  {
    name: 'a header is compared with its checksum',
    file: 'log/local/format/segment-file.ts',
    from: "if (bytes.readUInt32LE(124) !== crc32c(bytes.subarray(0, 124))) return 'corrupt'",
    to: '',
  },
  {
    name: 'records that damage took are counted',
    file: 'log/local/recover/salvage.ts',
    from: 'const damagedRecords = hasProvenDamage ? lostRecords : 0',
    to: 'const damagedRecords = 0',
  },
  {
    name: 'a damaged original is kept',
    file: 'log/local/recover/quarantine.ts',
    from: 'const isKept = await files.link(path, kept).then(',
    to: 'const isKept = await Promise.resolve().then(',
  },
  {
    name: 'a later group proves damage',
    file: 'log/local/recover/inspection.ts',
    from: 'this.hasGroupBehindDamage = true',
    to: '',
  },
  {
    name: 'a segment that was salvaged is read again',
    file: 'delivery/convert/conversion.ts',
    from: '(signal.aborted && !isReplaced)',
    to: 'signal.aborted',
    unfound: 'the next attempt compares the facts of the segment: a salvage that failed may have replaced it, too',
  },
  {
    name: 'a salvaged segment is delivered from its new footer',
    file: 'delivery/convert/policy.ts',
    from: "{ kind: 'end', as: 'again', pause }, history: paused }",
    to: "{ kind: 'retry', pause }, history: paused }",
  },
  {
    name: 'a copy of intact frames is synced',
    file: 'log/local/recover/salvage.ts',
    from: 'await to.sync()\n',
    to: '\n',
    histories: 500,
  },
  {
    name: 'a segment whose seal failed is recovered',
    file: 'log/local/write/current-segment.ts',
    from: "else if (state !== 'open' || frames === 0) await this.abandon()",
    to: '',
  },
  {
    name: 'files of an adoption have keys of their own',
    file: 'delivery/plane.ts',
    from: 'adoption: adoption?.id,',
    to: 'adoption: undefined,',
    unfound:
      'the lost machine is refused within seconds, so both seldom convert one segment: two-copies.test.ts has both deliver it',
  },
  {
    name: 'the marker comes before the report',
    file: 'delivery/plane.ts',
    from: "markerSink({ seal, earlierAdoptions: adoption?.earlier, logger }),\n      { name: 'outbox', record: ({ commit }) => outbox.add(commit) },",
    to: "{ name: 'outbox', record: ({ commit }) => outbox.add(commit) },\n      markerSink({ seal, earlierAdoptions: adoption?.earlier, logger }),",
  },
  {
    name: 'a segment has one output of a view version',
    file: 'control/fleet/job-source.ts',
    from: 'if (hasFiles || applied.includes(view_id) || added.includes(view_id)) {',
    to: 'if (false) {',
  },
  {
    name: 'a job covers segments that are delivered late',
    file: 'store/commits/late-segments.ts',
    from: 'if (!applied.includes(job.view_id)) await addUnit(db, { ...job, endpoint_id }, id)',
    to: 'if (applied.includes(id)) await addUnit(db, { ...job, endpoint_id }, id)',
  },
  {
    name: 'a file that a failed disk did not create is not missing',
    file: 'log/local/recover/recover-segment.ts',
    from: "if (orphan.durableBytes !== 0) return 'gone'",
    to: "return 'gone'",
  },
  {
    name: 'the id of the node is compared with that of its log',
    file: 'node/identity.ts',
    from: 'if (ownerNow !== id)',
    to: 'if (false)',
  },
  {
    name: 'a stop waits until its logs are sealed',
    file: 'log/local/write/log.ts',
    from: 'await Promise.race(signal.aborted ? [this.#stopped.promise] : [this.#stopped.promise, aborted.promise])',
    to: '',
  },
  {
    name: 'a record is in the copy store before it is acknowledged',
    file: 'ingest/gate/copied.ts',
    from: 'await appended.copied\n',
    to: '',
  },
  {
    name: 'a repeated key waits for the copy',
    file: 'ingest/gate/append-once.ts',
    from: 'if (stored.isRepeated && awaitsCopy(endpoint, asked)) await',
    to: 'if (stored.isRepeated && awaitsCopy(endpoint, asked)) void',
  },
  {
    name: 'copies are acknowledged in the order of their numbers',
    file: 'copies/copier.ts',
    from: 'await before\n',
    to: '',
  },
  {
    name: 'the boundary is raised before numbers are removed',
    file: 'copies/held-objects.ts',
    from: 'if (removed.length > 0) await this.#setBelow(below, signal)\n    for (const name of removed) await this.#options.store.remove(name, signal)',
    to: 'for (const name of removed) await this.#options.store.remove(name, signal)\n    if (removed.length > 0) await this.#setBelow(below, signal)',
  },
  {
    name: 'copies of earlier processes are completed after a restart',
    file: 'copies/copies.ts',
    from: 'if (segment !== undefined && found.isCopied && !(await this.#earlier.complete(segment))) continue',
    to: '',
    unfound: 'it takes a key that is sent again after a crash between the disk and the copy: src/copies/copies.test.ts covers it',
  },
  {
    name: 'a fence is looked for after the put and before the acknowledgement',
    file: 'copies/copier.ts',
    from: 'const isFenced = await this.#untilItWorks(() => this.#findFence())',
    to: 'const isFenced = false',
    unfound:
      'where a store keeps conditions, the closing object is enough; where it does not, it takes a put within the milliseconds of a takeover: copier.test.ts has that',
  },
  {
    name: 'objects go in the order of their numbers',
    file: 'copies/held-objects.ts',
    from: 'for (const segment of this.segments.values()) first = Math.min(first, segment.first)',
    to: '',
  },
  {
    name: 'the end of a delivered segment, whose beginning is removed, is not restored',
    file: 'copies/restore.ts',
    from: 'if (!mayLackPieces) restored.bytes -= await removeDeliveredRests(options, segments)',
    to: '',
  },
  {
    name: 'keys of a window are stored before the marker of their segment',
    file: 'delivery/convert/segment-windows.ts',
    from: 'await asFault(() => this.#windows?.register(view, this.#segment, built.keys.get(view.view_id) ?? null))',
    to: 'await asFault(() => this.#windows?.register(view, this.#segment, null))',
  },
  {
    name: 'a segment of a view with a window waits for those before it',
    file: 'delivery/convert/conversion.ts',
    from: 'await settlesBefore(this.#run.turn, signal)\n    signal.throwIfAborted()\n    try {\n      await this.#windows.prepare',
    to: 'try {\n      await this.#windows.prepare',
  },
  {
    name: 'an index that is older than the commits is completed',
    file: 'delivery/windows/key-windows.ts',
    from: 'if (!isCurrent) await this.#rebuild(index, view, segment, state, signal)',
    to: 'if (!isCurrent) await indexes.complete(index, 0)',
  },
  {
    name: 'a footer is compared with the frames before it',
    file: 'log/local/read/segment-reader.ts',
    from: 'if (!tally.matches(end.footer, end.offset)) {',
    to: 'if (false) {',
    unfound:
      'frames and footer have checksums of their own: only a whole frame that vanishes would need it, and no fault here takes one',
  },
]

const source = join(import.meta.dirname, '../../src')

/** Whether the source still has it as the list says. */
export function isThere({ file, from }: Safeguard): boolean {
  return readFileSync(join(source, file), 'utf8').includes(from)
}

/** Takes a safeguard out of all modules that are loaded from now on. Throws if its place has changed. */
export function takeOut(name: string): void {
  const safeguard = safeguards.find((each) => each.name === name)
  if (safeguard === undefined)
    throw new Error(`no safeguard is named ${JSON.stringify(name)}: ${safeguards.map((each) => each.name).join('; ')}`)
  const { file, from, to } = safeguard
  const path = join(source, file)
  if (!isThere(safeguard)) throw new Error(`${file} has no ${JSON.stringify(from)} any more`)
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      if (!url.startsWith('file:') || fileURLToPath(url) !== path) return loaded
      return { ...loaded, source: String(loaded.source).replace(from, () => to) }
    },
  })
}

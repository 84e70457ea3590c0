import { buildCommand, buildRouteMap } from '@stricli/core'
import type { DeliverFlags } from '../segments/deliver.ts'
import type { DiscardFlags } from '../segments/discard.ts'
import type { ExportFlags } from '../segments/export.ts'
import type { ListFlags } from '../segments/list.ts'
import type { RetryFlags } from '../segments/parked.ts'
import type { CliContext } from '../terminal/context.ts'
import type { JsonFlags } from '../terminal/print-json.ts'
import { flag, json, oneArgument, required, withDefault } from './parameters.ts'

const list = () => import('../segments/list.ts')
const exportCommand = () => import('../segments/export.ts')
const parked = () => import('../segments/parked.ts')
const deliver = () => import('../segments/deliver.ts')
const discard = () => import('../segments/discard.ts')
const file = () => import('../segments/file.ts')
const path = oneArgument('path of a segment', 'FILE')
const names = {
  kind: 'array',
  parameter: { parse: String, brief: 'names of segments or logs', placeholder: 'NAME' },
  minimum: 1,
} as const

/** Help of the commands that take a path. */
const readsFiles =
  'The file is a segment of the write-ahead log (.wal, .open, .quarantine) or of a bucket (.wal.zst). Continues behind damage, says where it is, and exits with 1.'

export const segmentsCommands = buildRouteMap({
  routes: {
    list: buildCommand<ListFlags, [], CliContext>({
      loader: async () => (await list()).listNodeSegments,
      parameters: { flags: { json } },
      docs: {
        brief: 'list every segment on this node, with its owner and why it is still here',
        fullDescription:
          'Lists every segment on this node: open, sealed, parked and quarantined, with owner, records, size, age and why it is still here. Works while the processes run and while they are down.',
      },
    }),
    export: buildCommand<ExportFlags, readonly string[], CliContext>({
      loader: async () => (await exportCommand()).exportSegments,
      parameters: {
        flags: {
          output: withDefault('-', 'new file to write to, - for standard output', 'FILE'),
        },
        positional: names,
      },
      docs: {
        brief: 'print the records of segments or whole logs as lines of JSON',
        fullDescription:
          'Prints one line of JSON per record: segment, seq, record_index, received_at, envelope and payload, as `inlet segments cat` does. Of a damaged file it prints what is intact; the exit code is 1 if anything is missing.',
      },
    }),
    retry: buildCommand<RetryFlags, readonly string[], CliContext>({
      loader: async () => (await parked()).retryParkedSegments,
      parameters: {
        flags: {
          all: flag('every parked segment of this node'),
          json,
        },
        positional: { ...names, minimum: 0 },
      },
      docs: {
        brief: 'convert parked segments again; every start does so as well',
        fullDescription:
          'Converts parked segments again, for example after an upgrade. A segment is parked if its content cannot be converted. Later segments are delivered meanwhile.',
      },
    }),
    quarantine: buildCommand<JsonFlags, readonly string[], CliContext>({
      loader: async () => (await parked()).quarantineParkedSegments,
      parameters: { flags: { json }, positional: names },
      docs: {
        brief: 'give up on parked segments; their files are kept',
        fullDescription:
          'Gives up on parked segments: they are not converted again. Their files are kept as .quarantine until you discard them.',
      },
    }),
    deliver: buildCommand<DeliverFlags, [log: string], CliContext>({
      loader: async () => (await deliver()).deliverLog,
      parameters: {
        flags: {
          destination: required('id of the destination to deliver to', 'ID'),
        },
        positional: oneArgument('name of a log', 'LOG'),
      },
      docs: {
        brief: 'deliver the segments of a log that has no destination',
        fullDescription:
          'Delivers the segments of a log whose endpoint is gone or has no destination: through the running delivery process, in order and exactly once, as segments and raw Parquet. Shows progress until nothing is left; stopping the command does not stop the delivery.',
      },
    }),
    discard: buildCommand<DiscardFlags, readonly string[], CliContext>({
      loader: async () => (await discard()).discardSegments,
      parameters: {
        flags: {
          yes: flag('remove them; without it only say what would be removed'),
          json,
        },
        positional: names,
      },
      docs: {
        brief: 'remove segments for good that are parked, quarantined or without an owner',
        fullDescription:
          'Removes segments for good that are parked, quarantined or without an owner, and says how many records that are. Export them first if in doubt.',
      },
    }),
    cat: buildCommand<object, [path: string], CliContext>({
      loader: async () => (await file()).catSegment,
      parameters: { positional: path },
      docs: {
        brief: 'print every record of a file as one line of JSON',
        fullDescription: `Prints every record of a file as one line of JSON. ${readsFiles}`,
      },
    }),
    check: buildCommand<JsonFlags, [path: string], CliContext>({
      loader: async () => (await file()).checkSegment,
      parameters: { flags: { json }, positional: path },
      docs: {
        brief: 'verify every checksum of a file and print a summary',
        fullDescription: `Verifies every checksum of a file and prints a summary. ${readsFiles}`,
      },
    }),
  },
  defaultCommand: 'list',
  docs: {
    brief: 'find and handle the segments on the disk of this node, and read segment files',
    fullDescription:
      'Finds and handles the segments on the disk of this node. A segment is named LOG/SEQ-INCARNATION; LOG is the id of its endpoint. `cat` and `check` read a single file by its path, wherever it is.',
  },
})

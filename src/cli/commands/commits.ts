import { buildCommand, buildRouteMap } from '@stricli/core'
import type { RebuildFlags } from '../commits/rebuild-command.ts'
import type { CliContext } from '../terminal/context.ts'
import { commitsFilesCommand, commitsListCommand } from './account-resources.ts'
import { flag, json, optional } from './parameters.ts'

export const commitsCommands = buildRouteMap({
  routes: {
    list: commitsListCommand,
    files: commitsFilesCommand,
    rebuild: buildCommand<RebuildFlags, [], CliContext>({
      loader: async () => (await import('../commits/rebuild-command.ts')).rebuildCommits,
      parameters: {
        flags: {
          endpoint: optional('only this endpoint', 'ID'),
          destination: optional('only this destination', 'ID'),
          dryRun: flag('report what would be recorded, but record nothing'),
          skipUnreadable: flag('let jobs begin again although a bucket is unreadable or empty: what only it knew stays missing'),
          json,
        },
      },
      docs: {
        brief: 'record commits that the database lost, from the markers in the buckets',
        fullDescription: `Records commits that the database lost, from the markers in the buckets: for example after a database was restored from an older copy.
Known commits are left unchanged, so it may run again at any time, also while the service runs.
Exits with 1 if something could not be read or was rejected.`,
      },
    }),
  },
  docs: { brief: 'look at commits, and record those that the database lost' },
})

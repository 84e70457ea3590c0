import { buildCommand, buildRouteMap } from '@stricli/core'
import type { CliContext } from '../terminal/context.ts'
import type { JsonFlags } from '../terminal/print-json.ts'
import { json, oneArgument } from './parameters.ts'

const certificates = () => import('../operator/certificates.ts')

export const certificatesCommands = buildRouteMap({
  routes: {
    list: buildCommand<JsonFlags, [], CliContext>({
      loader: async () => (await certificates()).listIssued,
      parameters: { flags: { json } },
      docs: { brief: 'list certificates that control issued, with their renewal' },
    }),
    renew: buildCommand<JsonFlags, [name: string], CliContext>({
      loader: async () => (await certificates()).renew,
      parameters: {
        flags: { json },
        positional: oneArgument('name of the certificate, as list shows it', 'NAME'),
      },
      docs: { brief: 'let control order a certificate now, whatever failed before' },
    }),
    root: buildCommand<object, [], CliContext>({
      loader: async () => (await certificates()).printRoot,
      parameters: {},
      docs: { brief: 'print the root of the development CA, for clients' },
    }),
  },
  docs: {
    brief: 'look after issued certificates',
    fullDescription: 'Shows and renews the certificates that control issues (INLET_CERTIFICATES), directly in the database.',
  },
})

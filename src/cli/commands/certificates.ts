import { buildRouteMap } from '@stricli/core'
import { command } from './command.ts'
import { json, oneArgument } from './parameters.ts'

const certificates = () => import('../operator/certificates.ts')

export const certificatesCommands = buildRouteMap({
  routes: {
    list: command('list certificates that control issued, with their renewal', async () => (await certificates()).listIssued, {
      flags: { json },
    }),
    renew: command('let control order a certificate now, whatever failed before', async () => (await certificates()).renew, {
      flags: { json },
      positional: oneArgument('name of the certificate, as list shows it', 'NAME'),
    }),
    root: command('print the root of the development CA, for clients', async () => (await certificates()).printRoot, {}),
  },
  docs: {
    brief: 'look after issued certificates',
    fullDescription: 'Shows and renews the certificates that control issues (INLET_CERTIFICATES), directly in the database.',
  },
})

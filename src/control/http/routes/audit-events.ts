import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { AuditEventPage, AuditEventQuery, InstallationAuditEventQuery } from '#model/audit-event.ts'
import type { AuditTrail } from '../../resources/audit-trail.ts'
import { resource } from './resource.ts'

export function auditEventRoutes(trail: AuditTrail): FastifyPluginCallbackZod {
  return resource('Audit events', (app) => {
    app.get(
      '/audit-events',
      {
        config: { scope: 'admin' },
        schema: {
          operationId: 'listAuditEvents',
          summary: 'List who changed what in the account, or tried to, newest first',
          querystring: AuditEventQuery,
          response: { 200: AuditEventPage },
        },
      },
      (request) => trail.list(request.principal.account_id, request.query),
    )
  })
}

/** The operator's view of all events, also of those that belong to no account. */
export function installationAuditEventRoutes(trail: AuditTrail): FastifyPluginCallbackZod {
  return resource('Audit events', (app) => {
    app.get(
      '/installation/audit-events',
      {
        config: { scope: 'operator' },
        schema: {
          operationId: 'listInstallationAuditEvents',
          summary: 'List who changed what in the installation, or tried to, newest first',
          querystring: InstallationAuditEventQuery,
          response: { 200: AuditEventPage },
        },
      },
      (request) => trail.listAll(request.query),
    )
  })
}

import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { AuditEventPage, AuditEventQuery, InstallationAuditEventQuery } from '#model/audit-event.ts'
import type { AuditTrail } from '../../resources/audit-trail.ts'
import { resource } from './resource.ts'

export function auditEventRoutes(trail: AuditTrail): FastifyPluginCallbackZod {
  return resource('Audit events', (operation) => {
    operation('GET /audit-events', 'listAuditEvents', 'admin', {
      summary: 'List who changed what in the account, or tried to, newest first',
      query: AuditEventQuery,
      response: { 200: AuditEventPage },
      run: (request) => trail.list(request.principal.account_id, request.query),
    })
  })
}

/** The operator's view of all events, also of those that belong to no account. */
export function installationAuditEventRoutes(trail: AuditTrail): FastifyPluginCallbackZod {
  return resource('Audit events', (operation) => {
    operation('GET /installation/audit-events', 'listInstallationAuditEvents', 'operator', {
      summary: 'List who changed what in the installation, or tried to, newest first',
      query: InstallationAuditEventQuery,
      response: { 200: AuditEventPage },
      run: (request) => trail.listAll(request.query),
    })
  })
}

/**
 * The audit trail of signing in.
 *
 * Owns: which calls below `/auth` are recorded, and whom an event names. Does not own: how events are stored.
 * Law: an event names a person, never the e-mail address or the secret that was tried. Failed attempts are bounded as others are.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SignIn } from '#auth/sign-in.ts'
import { AppError, errorTable } from '#errors.ts'
import type { AuditActor } from '#model/audit-event.ts'
import { Email } from '#model/person.ts'
import type { AuditTrail } from '../../resources/audit-trail.ts'
import type { People } from '../../resources/people.ts'

export type SignInAudit = { readonly signIn: SignIn; readonly trail: AuditTrail; readonly people: Pick<People, 'findByEmail'> }

/** Runs a call of the sign-in, and records who made it and what came of it. */
export async function auditSignIn(
  { signIn, trail, people }: SignInAudit,
  operation: string,
  request: FastifyRequest,
  reply: FastifyReply,
  run: () => Promise<unknown>,
): Promise<unknown> {
  const { ip, id, headers, body } = request
  const before = await signIn.find(headers.cookie ?? '')
  const record = async (error: string | null, status: number) => {
    const after = error === null ? await signIn.find(newCookies(reply)) : undefined
    const person_id = (after ?? before)?.person.id
    const tried = person_id === undefined ? await people.findByEmail(emailIn(body)) : undefined
    const actor: AuditActor = person_id === undefined ? 'unknown' : `person:${person_id}`
    const attempt = {
      ...{ account_id: null, actor, address: ip, operation },
      ...{ resource_id: person_id ?? tried?.id ?? null, request_id: id },
    }
    await trail.finish(trail.begin(attempt, undefined), { status, error })
  }
  try {
    const result = await run()
    // A provider answers by a redirect, also when it refuses.
    const isRefused = /[?&]error=/.test(String(reply.getHeader('location') ?? ''))
    await record(isRefused ? 'unauthorized' : null, reply.statusCode)
    return result
  } catch (error) {
    if (error instanceof AppError) await record(error.code, errorTable[error.code].status)
    throw error
  }
}

/** Returns the e-mail address that a request tries, as it is counted and looked up. Other text, of any length, is nobody's. */
export function emailIn(body: unknown): string | undefined {
  return typeof body === 'object' && body !== null && 'email' in body ? Email.safeParse(body.email).data : undefined
}

/** The cookies that the response sets, in the form of a request. */
function newCookies(reply: FastifyReply): string {
  const cookies = [reply.getHeader('set-cookie') ?? []].flat().map(String)
  return cookies.map((cookie) => cookie.split(';', 1)[0]).join('; ')
}

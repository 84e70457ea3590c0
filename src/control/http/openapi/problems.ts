/** An example of every error in the description. */
import { AppError, type AppErrorOptions, type ErrorCode, errorTable, type Problem, toProblem } from '#errors.ts'

/** Returns the examples that `referToProblems` refers to. */
export function problemExamples(baseUrl: string): Readonly<Record<string, { readonly value: Problem }>> {
  return Object.fromEntries(
    errorCodes.map((code) => {
      const error = new AppError(code, details[code] ?? errorTable[code].title, problemFields[code] ?? {})
      return [code, { value: toProblem(error, baseUrl) }]
    }),
  )
}

/** Fields that only one kind of error has. */
const problemFields: Partial<Record<ErrorCode, AppErrorOptions>> = {
  validation_error: { errors: [{ path: 'limit', message: 'must be a whole number from 1 to 200 (example: 50)' }] },
  quota_exceeded: { quota: 'endpoints' },
}

const details: Partial<Record<ErrorCode, string>> = {
  unauthorized: 'send the header Authorization: Bearer <access token>',
  forbidden: 'this operation needs a token with scope admin',
  account_suspended: 'the account is suspended: it can be read, but not changed; ask the operator of this installation',
  not_found: 'no such endpoint',
  conflict: 'destination name already exists',
  view_already_attached: 'the view is already attached to this endpoint',
  validation_error: 'limit: must be a whole number from 1 to 200 (example: 50)',
  quota_exceeded:
    'the account has 1000 endpoints, and its quota is 1000: delete one that is not needed, or ask the operator of this installation for more',
  too_many_requests: 'too many requests; wait before the next one',
  unavailable: 'the database is not available',
}

const errorCodes = Object.keys(errorTable) as ErrorCode[]

type Operation = { readonly operationId: string; readonly isChange: boolean }

/** For codes that not every operation with their status can return. */
const canReturn: Partial<Record<ErrorCode, (operation: Operation) => boolean>> = {
  account_suspended: ({ isChange }) => isChange,
  view_already_attached: ({ operationId }) => operationId === 'attachView',
  quota_exceeded: ({ operationId }) => ['createEndpoint', 'createKey', 'createView', 'createViewVersion'].includes(operationId),
}

/** Returns references to an example of each error with this status that an operation can return. */
export function referToProblems(status: number, operation: Operation): Record<string, { readonly $ref: string }> {
  const codes = errorCodes.filter((code) => errorTable[code].status === status)
  const possible = codes.filter((code) => canReturn[code]?.(operation) ?? true)
  return Object.fromEntries(possible.map((code) => [code, { $ref: reference(code) }]))
}

function reference(code: ErrorCode): string {
  return `#/components/examples/${code}`
}

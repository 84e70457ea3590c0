/** An error whose message is written for the person at the terminal, and says what to do. It is shown without a stack. */
export class UserError extends Error {
  override readonly name: string = 'UserError'
}

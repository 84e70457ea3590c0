/** People come in, stay, and are sent out. */
import { expect } from 'vitest'
import { describeInBrowser, firstLink, test, Visitor } from '../support/browser.ts'

describeInBrowser('sessions', () => {
  test('a link signs in once, and a session that ends elsewhere leads to the sign-in and back', async ({ browser, inlet }) => {
    const link = await firstLink(inlet)
    await using ada = await Visitor.first(browser, inlet)
    const cookies = await ada.page.context().cookies()
    expect(cookies.map(({ httpOnly, sameSite }) => ({ httpOnly, sameSite }))).toContainEqual({ httpOnly: true, sameSite: 'Lax' })

    await using mallory = await Visitor.open(browser, inlet)
    mallory.tolerate(/status of 4\d\d/)
    await mallory.page.goto(link)
    await mallory.page.getByLabel('Your name').fill('Mallory')
    await mallory.page.getByRole('button', { name: 'Sign in' }).click()
    await mallory.page.getByRole('alert').getByText(/link/i).waitFor()
    expect(new URL(mallory.page.url()).pathname).toBe('/sign-in')

    const password = 'nine blue herons'
    await ada.page.goto('/me')
    await ada.page.getByLabel('E-mail').fill('ada@example.com')
    await ada.page.getByRole('button', { name: 'Save profile' }).click()
    await ada.page.getByText('Profile saved').waitFor()
    await ada.page.getByLabel('New password').fill(password)
    await ada.page.getByRole('button', { name: 'Set password' }).click()
    await ada.page.getByRole('button', { name: 'Change password' }).waitFor()

    await using laptop = await Visitor.open(browser, inlet)
    const signIn = async (secret: string) => {
      await laptop.page.getByLabel('E-mail').fill('ada@example.com')
      await laptop.page.getByLabel('Password').fill(secret)
      await laptop.page.getByRole('button', { name: 'Sign in', exact: true }).click()
    }
    laptop.tolerate(/status of 401/)
    await laptop.page.goto('/me')
    await laptop.page.waitForURL(/\/sign-in\?to=/)
    await signIn('nine red herons')
    await laptop.page.getByRole('alert').waitFor()
    await signIn(password)
    await laptop.page.waitForURL((url) => url.pathname === '/me')
    await laptop.page.goto('/')
    await laptop.page.waitForURL(/\/in\//)
    const seen = new URL(laptop.page.url()).pathname

    await ada.page.reload()
    await ada.page.getByRole('button', { name: 'End', exact: true }).click()
    // The screen asks again by itself, so nobody has to touch it.
    await laptop.page.waitForURL((url) => url.pathname === '/sign-in')
    expect(new URL(laptop.page.url()).searchParams.get('to')).toBe(seen)
    await signIn(password)
    await laptop.page.waitForURL((url) => url.pathname === seen)

    for (const elsewhere of ['//evil.test/x', 'https://evil.test/x', '/\\evil.test/x', 'javascript:alert(1)']) {
      await laptop.page.goto(`/sign-in?to=${encodeURIComponent(elsewhere)}`)
      await signIn(password)
      // To the start, which leads on.
      await laptop.page.waitForURL(/\/in\/[^/]+$/)
    }
  })
})

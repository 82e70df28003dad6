import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;

import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/** Reads requests without their headers, a line each (API, version, hex, error), and prints what tells all an error. */
public class ErrorResponses {
    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ", -1);
            short version = Short.parseShort(parts[1]);
            ByteBuffer body = ByteBuffer.wrap(HexFormat.of().parseHex(parts[2]));
            RuntimeException error = parts[3].equals("expected")
                ? new InvalidRequestException("it is said why")
                : new IllegalStateException("not for clients");
            try {
                AbstractRequest request = AbstractRequest.parseRequest(
                    ApiKeys.forId(Integer.parseInt(parts[0])), version, new ByteBufferAccessor(body)).request;
                AbstractResponse response = request.getErrorResponse(0, error);
                System.out.println(response == null ? "none" : hex(response, version));
            } catch (RuntimeException refused) {
                System.out.println("refused");
            }
        }
    }

    private static String hex(AbstractResponse response, short version) {
        ByteBuffer answer = MessageUtil.toByteBufferAccessor(response.data(), version).buffer();
        byte[] bytes = new byte[answer.remaining()];
        answer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
